"""The face of the package, and what importing it costs."""

import subprocess
import sys
from importlib import import_module
from inspect import ismodule
from pathlib import Path

import studies.analysis
import studies.statistics


def test_every_public_name_is_a_thing_whatever_was_imported_before() -> None:
    for file in Path(studies.analysis.__file__).parent.glob("[a-z]*.py"):
        import_module(f"studies.analysis.{file.stem}")

    assert studies.statistics.__all__ == studies.analysis.__all__
    for name in studies.statistics.__all__:
        assert not ismodule(getattr(studies.statistics, name)), name


def test_judging_loads_no_torch_no_optuna_and_no_statistics_of_scipy() -> None:
    code = (
        "import sys; from studies.statistics import judge, sentence, contrast, kaplan_meier; "
        "print([name for name in ('torch', 'optuna', 'scipy.stats', 'pandas', 'sqlalchemy') "
        "if name in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"
