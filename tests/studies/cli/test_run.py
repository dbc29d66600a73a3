"""The command of a study in a file of the user's own."""

import sys
from pathlib import Path

import pytest

from studies.cli.named import run_app
from tests.studies.experiment.test_validate import FILE


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(FILE)


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["run", "mine.yaml", *words])
    with pytest.raises(SystemExit) as end:
        run_app()
    return int(end.value.code or 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--report", "mine.yaml"], "mine.yaml cannot be the folder of a report: File exists"),
        (["--report", "mine.yaml/x"], "mine.yaml/x cannot be the folder of a report: Not a dir"),
        (["--rerun", "roep"], "no arm of this call is named 'roep'; did you mean 'rope' or"),
        (["--rerun", "roep", "--plan"], "no arm of this call is named 'roep'"),
        (["--arms", " , "], "--arms: expected a comma-separated list of arms; got ' , '"),
    ],
)
def test_what_no_run_could_mend_is_refused_before_a_database_is_made(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert typed(monkeypatch, *words) == 2
    assert f"error: {said}" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.yaml"]


@pytest.mark.parametrize("name", ["extrapolation", "warmup_share", "ruoss_2023", "head_count.x"])
def test_a_study_is_not_named_as_one_that_comes_with_the_sandbox(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text(FILE.replace("name: mine", f"name: {name}"))
    assert typed(monkeypatch, "--plan") == 2
    told = (
        f"error: mine.yaml:2:1: name: {name!r} is the name of a study that comes with the sandbox"
    )
    assert told in capsys.readouterr().err
