"""The files behind a study go into its bundle, those that are still there."""

from pathlib import Path

import pytest

from studies.bundle.make import bring_sources, with_copies
from studies.experiment.draft import Draft
from studies.experiment.overrides import gather
from studies.experiment.plan import Plan
from studies.experiment.resolve import resolve
from studies.experiment.study import Budget, Study
from tests.studies.stored_models import TINY


def plan(files: dict[str, Path], *plugins: Path) -> Plan:
    loaded = tuple({"spec": str(file), "file": str(file.resolve())} for file in plugins)
    study = Study("s", "?", "?", ("encoder.position",), {"own": Budget("", {})})
    told = {use: str(file.resolve()) for use, file in files.items()}
    return resolve(Draft(study, gather(TINY), plugins=loaded, files=told))


def test_copies_of_files_of_one_name_lie_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("wide.yaml", "a/parts.py", "b/parts.py"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(name)
    made = plan({"settings": Path("wide.yaml")}, Path("a/parts.py"), Path("b/parts.py"))

    brought = bring_sources(made, tmp_path / "bundle")

    assert brought == {
        tmp_path / "wide.yaml": "sources/wide.yaml",
        tmp_path / "a/parts.py": "sources/parts.py",
        tmp_path / "b/parts.py": "sources/_parts.py",
    }
    copies = {file.name: file.read_text() for file in (tmp_path / "bundle/sources").iterdir()}
    assert copies == {
        "wide.yaml": "wide.yaml",
        "parts.py": "a/parts.py",
        "_parts.py": "b/parts.py",
    }


def test_what_a_file_imports_lies_as_far_below_its_copy(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    for name in ("mine.yaml", "parts/mine.py", "../above.py"):
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(name)
    files = {"study": folder / "mine.yaml"}

    brought = bring_sources(
        plan(files, folder / "parts/mine.py", folder / "../above.py"), tmp_path / "bundle"
    )

    assert list(brought.values()) == [
        *("sources/mine.yaml", "sources/parts/mine.py", "sources/above.py")
    ]
    found = (tmp_path / "bundle").rglob("*.*")
    copies = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in found}
    assert copies == {
        "bundle/sources/mine.yaml": "mine.yaml",
        "bundle/sources/parts/mine.py": "parts/mine.py",
        "bundle/sources/above.py": "../above.py",
    }


def test_the_command_of_a_bundle_names_the_copies_and_stays_as_it_is_else() -> None:
    copied = {
        Path("/at/home/wide.yaml"): "sources/wide.yaml",
        Path("/at/home/a/parts.py"): "sources/parts.py",
        Path("/at/home/b/parts.py"): "sources/_parts.py",
    }
    typed = (
        "python -m studies.run --config wide.yaml --import=../home/a/parts.py --import=b/parts.py "
        "--import ./a/parts.py --arms=rope --set=task=shift --report a"
    )

    assert with_copies(typed, copied) == (
        "python -m studies.run --config sources/wide.yaml --import=sources/parts.py "
        "--import=sources/_parts.py --import sources/parts.py --arms=rope --set=task=shift "
        "--report a"
    )


def test_a_study_without_files_and_one_whose_files_are_gone_bring_none(tmp_path: Path) -> None:
    assert bring_sources(plan({}), tmp_path) == {}
    assert bring_sources(plan({"settings": tmp_path / "gone.yaml"}), tmp_path) == {}
    assert list(tmp_path.iterdir()) == []
