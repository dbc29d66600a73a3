"""The files behind a study go into its bundle, and the words name the copies."""

from pathlib import Path

import pytest

from studies.bundle.make import bring_sources
from studies.experiment.overrides import gather
from studies.experiment.plan import Plan
from studies.experiment.study import Budget, Study
from tests.studies.stored_models import TINY


def plan(file: Path | None = None, *plugins: str) -> Plan:
    budgets = {"own": Budget("", {})}
    return Plan(Study("s", "?", "?", (), budgets, plugins=plugins, file=file), gather(TINY))


def test_words_name_the_copies_of_files_and_stay_as_they_are_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("wide.yaml", "a/parts.py", "b/parts.py"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(name)
    words = [
        *("--config", "wide.yaml", "--import=a/parts.py", "--import=b/parts.py"),
        *("--arms=rope", "--set=task=shift", "--import=a/parts.py", "--report", "a"),
    ]

    told = bring_sources(plan(), words, tmp_path / "bundle")

    assert told == [
        *("--config", "sources/wide.yaml", "--import=sources/parts.py"),
        *("--import=sources/_parts.py", "--arms=rope", "--set=task=shift"),
        *("--import=sources/parts.py", "--report", "a"),
    ]
    copies = {file.name: file.read_text() for file in (tmp_path / "bundle/sources").iterdir()}
    assert copies == {
        "wide.yaml": "wide.yaml",
        "parts.py": "a/parts.py",
        "_parts.py": "b/parts.py",
    }


def test_what_a_file_imports_lies_beside_its_copy(tmp_path: Path) -> None:
    file = tmp_path / "here" / "mine.yaml"
    for name in ("mine.yaml", "parts/mine.py", "../above.py"):
        path = file.parent / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(name)
    plugins = (f"{file.parent}/parts/mine.py", f"{file.parent}/../above.py", "installed.parts")

    told = bring_sources(plan(file, *plugins), [str(file), "--seeds=2"], tmp_path / "bundle")

    assert told == ["sources/mine.yaml", "--seeds=2"]
    copies = {path.name: path.read_text() for path in (tmp_path / "bundle").rglob("*.*")}
    assert copies == {"mine.yaml": "mine.yaml", "mine.py": "parts/mine.py"}


def test_a_study_without_files_brings_none(tmp_path: Path) -> None:
    assert bring_sources(plan(), ["--seeds=2"], tmp_path) == ["--seeds=2"]
    assert list(tmp_path.iterdir()) == []
