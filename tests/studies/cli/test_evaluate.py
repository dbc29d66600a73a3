"""python -m studies.evaluate, as it is typed."""

import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from store import Results
from studies.evaluate import app
from tests.studies.stored_models import Desk, copied, done_in


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A database with one seed of each of two arms, with weights."""
    return done_in(tmp_path_factory.mktemp("made"), seeds=1)


@pytest.fixture
def url(made: Desk, tmp_path: Path) -> str:
    """The same, to be added to."""
    return copied(made, tmp_path)


def call(url: str, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--storage", url])


def test_a_study_is_scored_at_new_lengths_once(url: str) -> None:
    first = call(url, "--study=tiny", "--lengths=12,10")
    again = call(url, "1,2", "--lengths", "12")

    assert (first.exit_code, first.stderr) == (0, "")
    assert "run 1 (shift, rope, seed 0)\n      12  accuracy 0." in first.stdout
    assert "      10  already stored (108 answers)" in first.stdout
    assert "12  not applicable: learned has one row per index up to max_length=10" in first.stdout
    assert f"10 scores added to {url} (exploratory" in first.stdout
    assert (again.exit_code, again.stderr) == (0, "")
    assert "12  already stored (not applicable)" in again.stdout
    assert again.stdout.endswith(f"0 scores added to {url}\n")
    stored = Results(url).scores(length=12, metric="skill")
    assert [(score.run_id, score.value is None) for score in stored] == [(1, False), (2, True)]


def test_a_changed_part_is_named_and_the_model_scored_all_the_same(url: str) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE es_components SET source_hash = 'old' WHERE name = 'rope'")
    connection.close()

    done = call(url, "1", "2", "--lengths=12")

    assert done.exit_code == 0
    assert "Warning: the code of position rope changed after run 1;" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_runs_of_a_study_without_weights_are_counted(url: str) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("DELETE FROM es_models WHERE run_id = 2")
    connection.close()

    some = call(url, "--study=tiny", "--lengths=12")
    one = call(url, "2", "--lengths=12")

    assert (some.exit_code, some.stderr) == (0, "Note: 1 of 2 runs have no saved weights.\n")
    assert one.exit_code == 2
    assert "run 2 (tiny, table) is done and has no saved weights" in one.stderr


def test_a_file_that_was_changed_adds_nothing(url: str, tmp_path: Path) -> None:
    [file] = (tmp_path / "sandbox.db-models").glob("run-1-*")
    file.write_bytes(file.read_bytes()[:-1] + b"\x00")

    done = call(url, "1", "--lengths=12")

    assert done.exit_code == 2
    assert "checksum mismatch" in done.stderr
    assert Results(url).scores(length=12) == ()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["1"], "--lengths is required"),
        (
            ["1", "--lengths=8,x"],
            "--lengths: expected whole numbers from 1 to 2,147,483,647",
        ),
        (["9" * 20, "--lengths=8"], "RUN: expected whole numbers from 1 to 2,147,483,647"),
        (["1", "--lengths=0"], "separated by commas; got '0'"),
        (["one", "--lengths=8"], "separated by commas; got 'one'"),
        (["--lengths=8"], "give either the ids of runs or --study"),
        (["1", "--study=tiny", "--lengths=8"], "give either the ids of runs or --study"),
        (["--study=tinny", "--lengths=8"], "no study with runs is named 'tinny'"),
        (["7", "--lengths=8"], "no run has the id 7; the ids are 1 to 2"),
        (["1", "--lengths=1"], "have length 2; got length=1; ask for 2 or more"),
    ],
)
def test_bad_input_ends_with_code_2(made: Desk, words: list[str], told: str) -> None:
    done = call(made.url, *words)

    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr


def test_lengths_that_need_too_much_memory_are_told_in_one_line(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: 80 GB\nframe #0")

    monkeypatch.setattr("studies.training.saved_models.add_later_scores", full)
    done = call(url, "1", "--lengths=12,4000")
    assert done.exit_code == 1
    assert done.stderr == (
        "error: run 1: out of memory at length 4000 (DefaultCPUAllocator: can't allocate memory: "
        "80 GB); use shorter lengths or a smaller --batch-size\n"
    )
