"""The README: its commands run, its tables are complete. (Its Python is run as a doctest.)"""

import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import studies.tasks
from store import Ledger
from studies import extrapolation
from studies.execution.scheduler import Scheduler
from studies.execution.trials import Trials
from studies.experiment.load import Typed, load_draft
from studies.experiment.resolve import resolve

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("$ python ")
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ python ")
]
STUDIES = "extrapolation|run|recipes|attention_numerics|norm_depth|head_count|head_search"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like that of a reader, with examples and a finished run of each of two arms."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "examples").symlink_to(ROOT / "examples")
    url = f"sqlite:///{folder / 'sandbox.db'}"
    words = ["study.arms=[rope, alibi]", "task=shift", "training.learning_rate=0.001"]
    with closing(Ledger.create(url)) as ledger:
        plan = resolve(load_draft(extrapolation.STUDY, Typed("quick", assignments=words)))
        scheduler = Scheduler(plan, ledger, Trials(url))
        scheduler.advance()
        for numbers in scheduler.confirming.values():
            claim = ledger.claim("reader", numbers)
            assert claim is not None
            score = {"split": "test", "length": 64, "metric": "accuracy", "n": 4, "value": 0.5}
            ledger.finish(claim, "done", scores=[score])
    return folder


def run_here(command: str) -> object:
    """Run `python ...` in this process, where torch is loaded already; return its exit code."""
    _, module, *words = shlex.split(command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [module, *words])
        with pytest.raises(SystemExit) as end:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    return end.value.code


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.filterwarnings("ignore:.* found in sys.modules:RuntimeWarning")
def test_the_commands_of_the_readme_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    # A study is described instead of run: its arguments are checked all the same.
    told = re.match(rf"-m studies\.({STUDIES})\b", command)
    if told and not re.search("--(plan|list)", command):
        command += " --describe"
    if command.endswith("--plan"):
        command += " --arms none --set evaluation.examples=8"
    monkeypatch.chdir(folder)

    code = run_here(command)

    out, err = capsys.readouterr()
    # The database of the reader has few runs, of which some questions find none.
    assert (code or 0, err.removesuffix("no rows match\n")) == (0, "")
    assert out


def test_the_readme_shows_commands_of_every_package() -> None:
    assert {command.split()[1].split(".")[0] for command in COMMANDS} == {
        "registry",
        "studies",
        "store",
    }


def test_files_that_the_documents_name_exist() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    folders = "variants|registry|store|studies|tests|docs|examples|benchmarks"
    path = rf"\b(?:{folders})/[\w/]+\.(?:py|yaml|md)\b"
    named = {one for file in documents for one in re.findall(path, file.read_text("utf-8"))}
    # `mine` is what a reader is told to make; the messages are written when tests store some.
    to_make = {one for one in named if "mine" in one or "NAME" in one} | {"tests/messages.yaml"}
    assert {one for one in named - to_make if not (ROOT / one).exists()} == set()


def rows_of_tables() -> dict[str, str]:
    return dict(re.findall(r"^\| `?(\w+)`? \| (.*) \|$", README, flags=re.MULTILINE))


def test_every_task_is_in_the_table() -> None:
    assert set(studies.tasks.tasks) <= set(rows_of_tables())


def test_every_budget_is_in_the_table() -> None:
    from studies.extrapolation import STUDY

    assert set(STUDY.budgets) <= set(rows_of_tables())


HEAVY = {"torch", "optuna", "sqlalchemy", "alembic", "pandas", "scipy", "numpy"}


@pytest.mark.parametrize(
    "module",
    [
        "registry", "registry list", "registry show", "registry explain", "registry draw",
        "store", "store runs", "store lengths", "store sql", "store show", "store studies",
        "studies", "studies freeze", "studies.evaluate", "studies.extrapolation",
        "studies.recipes", "studies.recipes activation",
        "studies.acceptance", "studies.link_ablation",
        "studies.run", "studies.run examples/my_study.yaml",
    ],
)  # fmt: skip
def test_help_is_quick_because_it_loads_nothing_heavy(tmp_path: Path, module: str) -> None:
    name, *words = module.split()
    # A study in a file is read, and so checked, before its help is shown.
    reads = {"pydantic", "ruamel"} if name.startswith("studies") and not words else set[str]()
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['x', *{words!r}, '--help']\n"
        "try:\n"
        f"    runpy.run_module({name!r}, run_name='__main__', alter_sys=True)\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        f"heavy = {HEAVY | reads!r}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    script = tmp_path / "help.py"
    script.write_text(code)

    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
