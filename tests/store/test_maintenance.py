"""Copies, checks and removals: whole while others write, named when wrong, only what is asked."""

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest
from typer.testing import CliRunner, Result

from store import Ledger, Results, StoreError
from store.__main__ import command_line
from store.maintenance import backup, check
from store.records import PlannedRun
from tests.store.ordinary_user import ordinary_user, shared_folder

MakeRun = Callable[..., PlannedRun]
ROOT = Path(__file__).resolve().parents[2]
SCORE = {"split": "test", "length": 8, "metric": "accuracy", "n": 4, "correct": 1, "value": 0.25}


def call(*words: str) -> Result:
    return CliRunner().invoke(command_line(), list(words))


def done(ledger: Ledger, run: PlannedRun, **changes: Any) -> int:
    ids = ledger.plan([run])
    claim = ledger.claim("w", ids)
    assert claim is not None
    if run.phase == "tune" and "trial" in changes:
        ledger.attach_trial(claim, *changes.pop("trial"))
    curve = [{"step": 1, "metric": "loss", "value": 1.0}]
    ledger.finish(claim, "done", scores=[SCORE], curves=curve)
    return ids[0]


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def problems(url: str) -> list[str]:
    return [f"{one.check}: {one.place} {one.problem}" for one in check(url)[0]]


def test_a_sound_database_has_no_problems(ledger: Ledger, url: str, make_run: MakeRun) -> None:
    done(ledger, make_run())
    found, told = check(url)
    assert found == []
    assert told.endswith("1 runs and 1 scores were looked at")
    result = call("check", "--storage", url)
    assert result.exit_code == 0
    assert "no problems" in result.stdout


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE es_scores SET run_id = 99", "orphan: es_scores row 1 refers to a row of es_runs"),
        ("DELETE FROM es_scores", "status: run 1 (done) is done but has no scores"),
        ("UPDATE es_runs SET status = 'planned'", "has scores but is not over"),
        ("UPDATE es_runs SET finished_at = NULL", "is over but not finished at any time"),
        ("UPDATE es_runs SET attempt = 0", "is over but was never claimed"),
        ("UPDATE es_scores SET correct = 9", "counts more right answers than answers"),
        ("UPDATE es_scores SET value = 0.5", "is not the share of right answers"),
        ("UPDATE es_scores SET status = 'nan'", "has a value and says that it has none"),
        (
            "INSERT INTO es_scores(run_id, split, length, metric, n, correct, value, imputed) "
            "SELECT run_id, split, length, metric, n, correct, value, imputed FROM es_scores",
            "totals: run 1, test accuracy at length 8 is there 2 times",
        ),
        ("UPDATE es_environments SET facts = '{}'", "hash: environment 1 is not what its hash"),
        ("UPDATE es_configs SET config = '{\"a\": 1}'", "hash: config 1 is not what its hash"),
        ("UPDATE es_protocols SET protocol = '[]'", "hash: protocol 1 of reach is not what"),
        ("UPDATE es_models SET size_bytes = 9", "model: model of run 1"),
        ("UPDATE es_models SET sha256 = 'aa'", "is another file than was saved"),
        ("UPDATE es_models SET path = 'gone'", "gone is not there"),
    ],
)
def test_what_is_wrong_is_named(
    ledger: Ledger, url: str, path: Path, make_run: MakeRun, statement: str, named: str
) -> None:
    place = ledger.environment({"python": "3.11"})
    number = done(ledger, make_run(environment_id=place))
    ledger.freeze("reach", {"seeds": 8})
    weights = path.parent / "weights.bin"
    weights.write_bytes(b"12345")
    digest = "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5"
    ledger.save_model(number, path="weights.bin", sha256=digest, size_bytes=5)
    assert problems(url) == []

    change(path, statement)

    assert any(named in one for one in problems(url)), problems(url)
    result = call("check", "--storage", url, "--format", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)


def test_a_damaged_page_is_named(ledger: Ledger, url: str, path: Path, make_run: MakeRun) -> None:
    ledger.plan([make_run(seed) for seed in range(300)])
    ledger.close()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff" * 4096)
    found, told = check(url)
    assert {one.check for one in found} <= {"integrity", "more"}
    assert found
    assert "the file is damaged" in told


WORDS = (
    *(["check"], ["studies"], ["runs"], ["scores"], ["lengths"], ["best"], ["failures"]),
    *(["changed"], ["show", "1"], ["sql", "select * from es_runs"], ["upgrade"]),
    *(["export", "runs"], ["prune", "--arm", "rope"]),
)
DAMAGE = {
    "schema": "UPDATE sqlite_master SET name = 'es_' || CAST(x'98' AS TEXT), "
    "sql = 'CREATE TABLE x(' WHERE name = 'es_runs'",
    "row": "UPDATE es_runs SET arm = 'ro' || CAST(x'98' AS TEXT)",
    "json": "UPDATE es_configs SET config = '{\"encoder\": ', options = '{'",
}


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words[0])
@pytest.mark.parametrize("where", DAMAGE)
def test_what_a_damaged_file_holds_is_told_in_one_line(
    ledger: Ledger, url: str, path: Path, make_run: MakeRun, words: list[str], where: str
) -> None:
    done(ledger, make_run())
    ledger.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(DAMAGE[where])
    result = call(*words, "--storage", url)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if where == "schema":
        assert result.exit_code == (1 if words == ["check"] else 2)
        assert "damaged" in result.stdout + result.stderr


def test_a_copy_of_a_damaged_schema_is_not_made(
    ledger: Ledger, url: str, path: Path, tmp_path: Path
) -> None:
    ledger.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(DAMAGE["schema"])
    with pytest.raises(StoreError, match="is damaged: it holds text that is not UTF-8"):
        backup(url, str(tmp_path / "copy.db"))
    assert not (tmp_path / "copy.db").exists()
    with pytest.raises(StoreError, match="is damaged: it holds text that is not UTF-8"):
        Ledger.create(url)


def test_a_config_whose_study_is_gone_is_told(
    ledger: Ledger, url: str, path: Path, make_run: MakeRun
) -> None:
    done(ledger, make_run())
    done(ledger, make_run(study="other", identity="other"))
    ledger.close()
    change(path, "UPDATE es_studies SET name = 'lost' WHERE name = 'other'")
    result = call("scores", "--storage", url)
    assert result.exit_code == 2
    assert "configs refer to the study 'other', which is not there" in result.stderr
    assert call("check", "--storage", url).exit_code == 1


def trial(url: str, run: int | None) -> tuple[str, int]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(study_name="ours", storage=url, load_if_exists=True)
    made = study.ask()
    if run is not None:
        made.set_user_attr("run", run)
    study.tell(made, 1.0)
    return "ours", made.number


def test_runs_and_trials_that_lost_each_other_are_named(
    ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    done(ledger, make_run(0, phase="tune"), trial=trial(url, 1))
    trial(url, None)
    assert problems(url) == []

    trial(url, 99)
    done(ledger, make_run(1, phase="tune"), trial=("ours", 77))

    assert problems(url) == [
        "orphan: run 2 its trial 77 of 'ours' is not in Optuna's tables",
        "orphan: trial 2 of 'ours' its run 99 is gone",
    ]


def test_deleting_a_study_in_optuna_leaves_ours_whole(
    ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    number = done(ledger, make_run(0, phase="tune"), trial=trial(url, 1))
    optuna.delete_study(study_name="ours", storage=url)
    assert problems(url) == [
        f"orphan: run {number} its trial 0 of 'ours' is not in Optuna's tables"
    ]
    assert len(Results(url).scores(phase="tune")) == 1


def test_pruning_says_first_and_leaves_optuna_whole(
    ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    done(ledger, make_run(0, phase="tune"), trial=trial(url, 1))
    kept = done(ledger, make_run(1, config={"training": {"rate": 1}}))

    said = call("prune", "--phase", "tune", "--storage", url)
    assert said.exit_code == 0
    assert "1 run (1 done) would be removed" in said.stdout
    assert len(Results(url).runs(phase="all")) == 2

    did = call("prune", "--phase", "tune", "--storage", url, "--yes")

    assert "1 run (1 done) removed" in did.stdout
    assert [run.id for run in Results(url).runs(phase="all")] == [kept]
    assert len(optuna.load_study(study_name="ours", storage=url).trials) == 1
    assert problems(url) == ["orphan: trial 0 of 'ours' its run 1 is gone"]
    (again,) = ledger.plan([make_run(5)])
    assert again == kept + 1


def test_pruning_needs_to_be_told_which_and_spares_what_runs(
    ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    ids = ledger.plan([make_run()])
    assert ledger.claim("w", ids) is not None
    for words, told in (
        ([], "select runs with --study"),
        (["--study", "reach"], "run 1 is running"),
        (["--where", "arm =="], "allowed are names"),
        (["--superseded", "--where", "seed == 1) or (seed == 0"], "unmatched ')'"),
        (["--superseded", "--where", ""], "invalid syntax"),
    ):
        result = call("prune", "--yes", "--storage", url, *words)
        assert result.exit_code == 2
        assert told in result.stderr
    assert len(Results(url).runs()) == 1
    assert "nothing is removed" in call("prune", "--arm", "x", "--storage", url).stdout


def test_a_backup_is_whole_while_others_write(
    ledger: Ledger, url: str, path: Path, make_run: MakeRun
) -> None:
    writer = (
        "import sys\nfrom store import Ledger\nfrom tests.store.conftest import make_planned\n"
        "ledger = Ledger.open(sys.argv[1])\nprint('on', flush=True)\nseed = 0\n"
        "while True:\n"
        "    ledger.plan([make_planned(seed * 10 + at) for at in range(10)])\n    seed += 1\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", writer, url], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        for number in range(3):
            target = path.parent / f"copy{number}.db"
            assert "checked" in backup(url, str(target))
            copied = len(Results(f"sqlite:///{target}").runs())
            # Each plan is one transaction of ten runs: no copy may hold a part of one.
            assert copied % 10 == 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert sorted(one.name for one in path.parent.glob("copy*")) == [
        "copy0.db",
        "copy1.db",
        "copy2.db",
    ]


def test_a_backup_overwrites_nothing(ledger: Ledger, url: str, path: Path) -> None:
    target = path.parent / "copy.db"
    target.write_text("precious")
    with pytest.raises(StoreError, match=r"copy\.db exists; name a new file"):
        backup(url, str(target))
    assert target.read_text() == "precious"
    with pytest.raises(StoreError, match="cannot be written"):
        backup(url, str(path.parent / "none" / "copy.db"))


def test_a_backup_of_a_stump_blames_the_file_and_not_the_copy(
    ledger: Ledger, path: Path, tmp_path: Path
) -> None:
    ledger.close()
    stump, target = tmp_path / "stump.db", tmp_path / "copy.db"
    stump.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StoreError, match=r"stump\.db.* is damaged"):
        backup(f"sqlite:///{stump}", str(target))
    assert list(tmp_path.glob("*copy*")) == []


def test_a_backup_of_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    other, target = tmp_path / "other.db", tmp_path / "copy.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE notes (text)")
    with pytest.raises(StoreError, match=r"other\.db holds no encoder-sandbox tables"):
        backup(f"sqlite:///{other}", str(target))
    assert list(tmp_path.glob("*copy*")) == []


def test_a_file_cut_short_is_a_finding_of_a_check(
    ledger: Ledger, path: Path, make_run: MakeRun
) -> None:
    ledger.plan([make_run(seed) for seed in range(300)])
    ledger.close()
    cut = path.parent / "cut.db"
    cut.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    result = call("check", "--storage", f"sqlite:///{cut}")
    assert result.exit_code == 1
    assert "malformed" in result.stdout


def test_a_full_disk_loses_nothing(ledger: Ledger, url: str, path: Path, make_run: MakeRun) -> None:
    """The size that a file may have is limited, as the end of a disk would."""
    before = [done(ledger, make_run(seed)) for seed in range(3)]
    script = (
        "import resource, signal, sys\nfrom store import Ledger, StoreError\n"
        "from tests.store.conftest import make_planned\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "ledger = Ledger.open(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "try:\n    ledger.plan([make_planned(seed, provenance={'x': 'y' * 999})"
        " for seed in range(9, 5000)])\n"
        "except StoreError as error:\n    print(error)\n"
    )
    done_ = subprocess.run(
        [sys.executable, "-c", script, url], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done_.returncode == 0, done_.stderr
    assert "sandbox.db: " in done_.stdout
    assert any(word in done_.stdout for word in ("disk", "full", "I/O"))
    assert [run.id for run in Results(url).runs()] == before
    assert problems(url) == []
    assert ledger.plan([make_run(50)]) == [before[-1] + 1]


def test_an_export_to_a_full_disk_leaves_no_half_file(
    ledger: Ledger, url: str, tmp_path: Path, make_run: MakeRun
) -> None:
    ledger.plan([make_run(seed) for seed in range(200)])
    target = tmp_path / "runs.csv"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
        result = call("export", "runs", "--storage", url, "--out", str(target))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert result.exit_code == 2
    assert "cannot be written: File too large" in result.stderr
    assert [name for name in os.listdir(tmp_path) if "runs.csv" in name] == []


def test_a_read_only_folder_is_told(ledger: Ledger, path: Path) -> None:
    ledger.close()
    with shared_folder() as folder:
        kept = Path(shutil.copy(path, folder / "sandbox.db"))
        folder.chmod(0o555)
        with ordinary_user():
            for make in (Ledger.create, Ledger.open, Results):
                with pytest.raises(StoreError, match="its folder must be writable"):
                    make(f"sqlite:///{kept}")
        assert [one.name for one in folder.iterdir()] == ["sandbox.db"]
        assert kept.read_bytes() == path.read_bytes()


def test_a_backup_into_a_read_only_folder_is_told(ledger: Ledger, path: Path) -> None:
    ledger.close()
    with shared_folder() as source, shared_folder() as target:
        kept = Path(shutil.copy(path, source / "sandbox.db"))
        source.chmod(0o777)
        target.chmod(0o555)
        with ordinary_user(), pytest.raises(StoreError, match=r"copy\.db cannot be written"):
            backup(f"sqlite:///{kept}", str(target / "copy.db"))
        assert list(target.iterdir()) == []


def test_a_file_that_may_only_be_read_is_told(
    ledger: Ledger, path: Path, make_run: MakeRun
) -> None:
    ledger.close()
    with shared_folder() as folder:
        kept = Path(shutil.copy(path, folder / "sandbox.db"))
        folder.chmod(0o777)
        kept.chmod(0o444)
        with ordinary_user():
            assert Results(f"sqlite:///{kept}").runs() == ()
            with pytest.raises(StoreError, match="readonly database"):
                Ledger.open(f"sqlite:///{kept}").plan([make_run()])
        assert kept.read_bytes() == path.read_bytes()


def test_a_folder_that_may_not_be_entered_is_told(ledger: Ledger, path: Path) -> None:
    ledger.close()
    with shared_folder() as folder:
        shutil.copy(path, folder / "sandbox.db")
        folder.chmod(0)
        with (
            ordinary_user(),
            pytest.raises(StoreError, match=r"sandbox\.db cannot be opened: Permission denied"),
        ):
            Results(f"sqlite:///{folder}/sandbox.db")
