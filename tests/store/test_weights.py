"""Files of weights beside a database: whole or not there, found again, and looked after."""

import hashlib
import os
from pathlib import Path

import pytest

from store import Claim, Ledger, Results, StoreError
from store.maintenance import check
from store.weights import ModelFiles
from tests.messages import Messages
from tests.store.conftest import MakeRun

CONTENT = b"twelve bytes"
SCORE = {"split": "test", "length": 8, "metric": "nll", "n": 1, "value": 0.5}


def claimed(ledger: Ledger, make_run: MakeRun) -> Claim:
    claim = ledger.claim("w", ledger.plan([make_run()]))
    assert claim is not None
    return claim


def problems(url: str) -> list[str]:
    return [f"{one.check}: {one.place}: {one.problem}" for one in check(url)[0]]


def finish(ledger: Ledger, claim: Claim, url: str) -> Path:
    model = ModelFiles(url).write(claim, CONTENT)
    assert ledger.finish(claim, "done", scores=[SCORE], model=model)
    return ModelFiles(url).home / model.path


@pytest.mark.parametrize(
    ("url", "home", "folder"),
    [
        ("sqlite:///sandbox.db", ".", "sandbox.db-models"),
        ("sqlite:////data/my results.db", "/data", "/data/my results.db-models"),
        ("postgresql+psycopg://me:secret@host/results", ".", "results-models"),
    ],
)
def test_weights_are_in_a_folder_beside_their_database(url: str, home: str, folder: str) -> None:
    files = ModelFiles(url)

    assert (files.home, files.folder) == (Path(home), Path(folder))


def test_a_finished_run_names_its_file_with_hash_and_size(
    ledger: Ledger, url: str, path: Path, make_run: MakeRun
) -> None:
    file = finish(ledger, claimed(ledger, make_run), url)

    [model] = Results(url).models()
    assert file.parent == path.parent / "sandbox.db-models"
    assert path.parent / model.path == file
    assert (model.sha256, model.size_bytes) == (hashlib.sha256(CONTENT).hexdigest(), 12)
    assert ModelFiles(url).read(model) == CONTENT
    assert list(file.parent.iterdir()) == [file]
    assert problems(url) == []


def test_database_and_folder_can_be_moved_together(
    ledger: Ledger, url: str, path: Path, make_run: MakeRun
) -> None:
    finish(ledger, claimed(ledger, make_run), url)
    ledger.close()
    moved = path.parent / "elsewhere"
    moved.mkdir()
    for name in (path.name, f"{path.name}-models"):
        (path.parent / name).rename(moved / name)

    assert problems(f"sqlite:///{moved / path.name}") == []


def test_a_claim_that_lost_its_run_leaves_the_stored_weights_alone(
    ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    claim = claimed(ledger, make_run)
    ledger.release(claim)
    again = ledger.claim("v", [claim.run.id])
    assert again is not None
    file = finish(ledger, again, url)

    late = ModelFiles(url).write(claim, b"other")
    assert not ledger.finish(claim, "done", scores=[SCORE], model=late)

    assert [model.path for model in Results(url).models()] == [f"{file.parent.name}/{file.name}"]
    assert file.read_bytes() == CONTENT


def test_a_write_that_fails_leaves_no_file(
    messages: Messages, ledger: Ledger, url: str, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claimed(ledger, make_run)

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with messages.raises(StoreError):
        ModelFiles(url).write(claim, CONTENT)

    assert list(ModelFiles(url).folder.iterdir()) == []


@pytest.mark.parametrize("running", [True, False])
def test_a_half_file_is_removed_once_its_run_is_not_running(
    ledger: Ledger, url: str, make_run: MakeRun, running: bool
) -> None:
    claim = claimed(ledger, make_run)
    files = ModelFiles(url)
    files.folder.mkdir()
    half = files.folder / f".run-{claim.run.id}-attempt-1-x.safetensors.77.part"
    half.write_bytes(b"tw")
    if not running:
        ledger.release(claim)

    found = problems(url)
    files.remove_halves({claim.run.id} if running else ())

    assert half.exists() == running
    assert [one for one in found if "half of a file" in one] == ([] if running else found)
    assert bool(found) != running


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (lambda file: file.unlink(), "is not there"),
        (lambda file: file.write_bytes(CONTENT[:-1]), "has 11 bytes, not 12"),
        (lambda file: file.write_bytes(b"twelve bytez"), "is another file than was saved"),
        (lambda file: file.rename(file.with_name("run-9-attempt-1.safetensors")), "of no run"),
    ],
    ids=["missing", "cut", "one byte changed", "renamed"],
)
def test_check_names_files_that_are_missing_changed_or_of_no_run(
    ledger: Ledger, url: str, make_run: MakeRun, harm: object, named: str
) -> None:
    file = finish(ledger, claimed(ledger, make_run), url)

    harm(file)  # type: ignore[operator]

    assert any(named in one for one in problems(url)), problems(url)


def test_a_changed_file_is_not_read(
    messages: Messages, ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    file = finish(ledger, claimed(ledger, make_run), url)
    [model] = Results(url).models()

    file.write_bytes(b"twelve bytez")
    with messages.raises(StoreError):
        ModelFiles(url).read(model)
    file.unlink()
    with messages.raises(StoreError):
        ModelFiles(url).read(model)


def test_a_run_planned_anew_loses_its_file_and_no_other(
    ledger: Ledger, url: str, path: Path, make_run: MakeRun
) -> None:
    claim = claimed(ledger, make_run)
    file = finish(ledger, claim, url)
    elsewhere = path.parent / "mine.safetensors"
    elsewhere.write_bytes(CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    ledger.save_model(claim.run.id, path="mine.safetensors", sha256=digest, size_bytes=12)

    assert ledger.reset([claim.run.id], ["done"]) == 1

    assert (file.exists(), elsewhere.exists()) == (False, True)
    assert Results(url).models(phase=None) == ()


def test_a_run_is_looked_up_by_its_id(
    messages: Messages, ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    with messages.raises(StoreError):
        Results(url).run(7)
    claimed(ledger, make_run)

    assert Results(url).run(1).arm == "rope"
    with messages.raises(StoreError):
        Results(url).run(7)
