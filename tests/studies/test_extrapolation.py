"""The study from the command line to the database, and through kills."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from sqlalchemy import Engine, event

from store import Results
from store.maintenance import check
from studies.extrapolation import main
from variants.masks import CONVENTION

ROOT = Path(__file__).parents[2]
BRIEF = [
    "--arms=rope,none", "--seeds=2", "--set=task={name: shift, k: 1, alphabet: 3}",
    "--set=study.learning_rates=[0.003, 0.01]", "--set=evaluation.examples=16",
    "--set=evaluation.test_lengths=[16, 24]", "--set=training.warmup_steps=2", "--workers=1",
]  # fmt: skip
STEPS = "--set=training.steps=30"
RUNS = 2 * (2 + 2)
PATIENCE_SECONDS = 240
WRITING = {"INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP"}


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "studies.extrapolation", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    process = start(folder, *words)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of a call in this process."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call_here(*words: str) -> int:
    """Call the command in this process, where torch is loaded already; return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["extrapolation", *words])
        with pytest.raises(SystemExit) as end:
            main()
    assert isinstance(end.value.code, int)
    return end.value.code


def ask(folder: Path, question: str) -> list[tuple]:
    path = folder / "sandbox.db"
    if not path.exists():
        return []
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)
    try:
        return connection.execute(question).fetchall()
    except sqlite3.OperationalError:
        return []  # the tables are not there yet
    finally:
        connection.close()


def wait_for(condition: Callable[[], Any]) -> Any:
    """Poll: what is waited for is the work of other processes."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)
    return found


def running(folder: Path) -> list[tuple]:
    return ask(folder, "select worker, id from es_runs where status = 'running'")


def numbers(folder: Path) -> list[tuple]:
    return ask(
        folder,
        "select task, arm, phase, seed, config_hash, split, length, metric, n, correct, value "
        "from es_scores join es_runs on es_runs.id = run_id order by 1, 2, 3, 4, 5, 6, 7, 8",
    )


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture(scope="session")
def first_call(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[tuple]]:
    """A short study that nothing disturbed: its folder, what it printed, its numbers."""
    folder = tmp_path_factory.mktemp("finished")
    done = call(folder, *BRIEF, STEPS)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, numbers(folder)


@pytest.fixture
def finished(first_call: tuple[Path, str, list[tuple]]) -> tuple[Path, str]:
    """A folder in which a short study has ended, and what it printed."""
    folder, printed, _ = first_call
    return folder, printed


def test_a_study_stores_every_run_and_prints_its_answer(finished: tuple[Path, str]) -> None:
    folder, printed = finished

    assert ask(folder, "select phase, status, count(*) from es_runs group by 1, 2") == [
        ("confirm", "done", 4),
        ("tune", "done", 4),
    ]
    for word in ("skill", "accuracy", "exact match", "floor", "rope ", "none ", "16", "24"):
        assert word in printed
    assert (
        printed.count("did not learn")
        + printed.count("learned in")
        + printed.count("falls below")
        + printed.count("holds to length")
        == 2
    )


def statements(*words: str) -> list[str]:
    """The SQL of a call in this process, Optuna's too; workers are other processes."""
    seen: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        assert call_here(*words) == 0
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    return seen


def test_a_finished_study_is_asked_again_without_a_writing_transaction(
    finished: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished[0])

    seen = statements(*BRIEF, STEPS)

    assert [one for one in seen if one.split()[0] in WRITING or one == "BEGIN IMMEDIATE"] == []
    assert 0 < len(seen) <= 120


@pytest.mark.slow
def test_the_parent_of_a_smoke_study_needs_few_statements(here: Path) -> None:
    assert 0 < len(statements("--budget=smoke")) <= 500


def test_the_printed_means_are_those_of_the_database(finished: tuple[Path, str]) -> None:
    folder, printed = finished
    stored = ask(
        folder,
        "select avg(value) from es_scores join es_runs on es_runs.id = run_id where arm = 'rope' "
        "and phase = 'confirm' and split = 'test' and metric = 'accuracy' and length = 24",
    )[0][0]

    lines = printed[printed.index("accuracy (") :].splitlines()
    row = next(line for line in lines if line.strip().startswith("rope"))
    assert row.split()[-1].partition("±")[0] == f"{stored:.2f}".lstrip("0")


def test_a_second_call_trains_nothing_and_prints_the_same(finished: tuple[Path, str]) -> None:
    folder, printed = finished
    before = ask(folder, "select id, attempt, finished_at from es_runs order by 1")

    again = call(folder, *BRIEF, STEPS)

    assert (again.returncode, again.stdout, again.stderr) == (0, printed, "")
    assert ask(folder, "select id, attempt, finished_at from es_runs order by 1") == before


def test_a_finished_study_says_that_its_runs_have_no_weights_and_how_to_get_them(
    finished: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, _ = finished
    monkeypatch.chdir(folder)

    code = call_here(*BRIEF, STEPS, "--save-models")

    told = "4 finished runs have no saved weights (2 of rope, 2 of none)"
    err = capsys.readouterr().err
    assert code == 0
    assert told in err
    assert "--rerun rope --rerun none to repeat them" in err
    assert not (folder / "sandbox.db-models").exists()


def test_each_tuning_run_is_a_trial_of_its_arm(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    storage = f"sqlite:///{folder / 'sandbox.db'}"

    studies = optuna.get_all_study_summaries(storage=storage)

    assert sorted(study.study_name.rpartition("/")[0] for study in studies) == [
        "extrapolation/shift/none",
        "extrapolation/shift/rope",
    ]
    for summary in studies:
        study = optuna.load_study(study_name=summary.study_name, storage=storage)
        assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 2
        arm = summary.study_name.split("/")[2]
        rates = {run.config["training"]["learning_rate"] for run in results(folder).runs(arm=arm)}
        assert rates == {study.best_params["training.learning_rate"]}


def results(folder: Path) -> Results:
    return Results(f"sqlite:///{folder / 'sandbox.db'}")


def test_a_finished_study_is_whole_in_its_one_file(
    finished: tuple[Path, str], tmp_path: Path
) -> None:
    """Even where only that file is copied, without SQLite's log beside it."""
    folder, _ = finished
    # By another process: closing a file drops the locks of all connections that this one has.
    subprocess.run(["cp", folder / "sandbox.db", tmp_path], check=True)

    there, copied = results(folder), results(tmp_path)

    assert copied.counts() == there.counts()
    assert len(copied.scores(phase="all")) == len(there.scores(phase="all")) > 0


def test_runs_are_queried_by_what_varies(finished: tuple[Path, str]) -> None:
    folder, _ = finished

    frame = results(folder).scores(study="extrapolation", metric="accuracy", length=24).frame()

    assert list(frame.columns[:13]) == [
        "run_id", "study", "task", "arm", "phase", "seed", "split", "length", "metric", "bin", "n",
        "correct", "value",
    ]  # fmt: skip
    assert set(frame["encoder.position.name"]) == {"rope", "none"}
    assert len(frame) == 4
    assert list(frame["correct"] / frame["n"]) == list(frame["value"])


def test_a_run_knows_where_it_came_from(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    run = results(folder).runs(arm="rope")[0]

    assert run.config["training"]["steps"] == run.steps == 30
    assert run.provenance["threads"] == 1
    assert run.provenance["optimizer"] == "AdamW"
    assert run.provenance["mask_convention"] == CONVENTION == 2
    assert run.provenance["generator"] == {"name": "shift", "k": 1, "alphabet": 3}
    assert set(run.provenance["seeds"]) >= {"data", "init", "order", "evaluation"}
    assert run.provenance["command"] == [*BRIEF, STEPS]
    assert (run.wall_seconds or 0) > 0
    assert (run.cpu_seconds or 0) > 0
    assert (run.parameters or 0) > 1000
    assert run.environment_id is not None
    facts = results(folder).environment(run.environment_id)
    assert facts["packages"]["torch"].startswith("2.")


def test_a_new_arm_joins_and_nothing_else_is_done_again(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    before = ask(folder, "select id, attempt, finished_at from es_runs order by 1")
    words = [word.replace("rope,none", "mine,rope,none") for word in BRIEF]

    done = call(folder, *words, STEPS, f"--import={ROOT / 'examples/my_position.py'}")

    assert done.returncode == 0, done.stderr
    assert "  mine " in done.stdout
    assert ask(folder, "select id, attempt, finished_at from es_runs order by 1")[:RUNS] == before
    stored = results(folder).scores(position="mine", metric="skill", split="test").frame()
    assert set(stored["arm"]) == {"mine"}
    assert len(stored) == 2 * 2
    [part] = results(folder).runs(arm="mine")[0].provenance["plugin_parts"]
    assert part == "position mine"


@pytest.mark.slow
def test_an_arm_runs_again_when_asked(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    question = "select arm, finished_at from es_runs where arm in ('rope', 'none') order by id"
    before, values = ask(folder, question), numbers(folder)

    done = call(folder, *BRIEF, STEPS, "--rerun=none")

    assert done.returncode == 0, done.stderr
    pairs = list(zip(before, ask(folder, question), strict=True))
    assert all((old == new) == (old[0] == "rope") for old, new in pairs)
    assert numbers(folder) == values


TWICE = [*BRIEF, STEPS, "--workers=2"]


@pytest.fixture
def undisturbed(first_call: tuple[Path, str, list[tuple]]) -> list[tuple]:
    """The numbers of the same study that nothing disturbs, from a single worker."""
    return first_call[2]


def assert_whole(folder: Path, undisturbed: list[tuple]) -> None:
    """Every run once, the numbers of the undisturbed study, and Optuna in line."""
    assert ask(folder, "select status, count(*) from es_runs group by 1") == [("done", RUNS)]
    assert numbers(folder) == undisturbed
    trials = ask(folder, "select state, count(*) from trials group by 1 order by 1")
    assert dict(trials)["COMPLETE"] == 4
    assert "RUNNING" not in dict(trials)


@pytest.mark.slow
def test_a_killed_worker_costs_one_attempt(tmp_path: Path, undisturbed: list[tuple]) -> None:
    process = start(tmp_path, *TWICE, "--save-models")
    worker, run = wait_for(lambda: running(tmp_path))[0]
    os.kill(int(worker.split("/")[1]), signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)

    assert process.returncode == 0, err
    assert_whole(tmp_path, undisturbed)
    attempts = dict(ask(tmp_path, "select id, attempt from es_runs"))
    assert attempts.pop(run) == 2
    assert set(attempts.values()) == {1}
    # The weights of each confirming run are there, whole, and nothing beside them.
    assert check(f"sqlite:///{tmp_path / 'sandbox.db'}")[0] == []
    assert len(results(tmp_path).models()) == 4


@pytest.mark.slow
def test_a_killed_parent_leaves_no_worker_and_the_next_call_completes(
    tmp_path: Path, undisturbed: list[tuple]
) -> None:
    process = start(tmp_path, *TWICE)
    wait_for(lambda: ask(tmp_path, "select 1 from es_runs where status = 'done'"))
    workers = wait_for(lambda: running(tmp_path))
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)
    wait_for(lambda: not any(is_there(int(worker.split("/")[1])) for worker, _ in workers))
    kept = ask(tmp_path, "select id, finished_at from es_runs where status = 'done'")
    assert 0 < len(kept) < RUNS

    done = call(tmp_path, *TWICE)

    assert done.returncode == 0, done.stderr
    assert_whole(tmp_path, undisturbed)
    assert set(kept) <= set(ask(tmp_path, "select id, finished_at from es_runs"))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_study_says_how_to_go_on(
    tmp_path: Path, undisturbed: list[tuple], number: int, code: int
) -> None:
    process = start(tmp_path, *TWICE)
    workers = wait_for(lambda: running(tmp_path))
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)

    assert (process.returncode, out) == (code, "")
    assert f"of {RUNS} runs finished. Rerun the command to resume." in err
    assert "Traceback" not in err
    assert running(tmp_path) == []
    assert not any(is_there(int(worker.split("/")[1])) for worker, _ in workers)

    assert call(tmp_path, *TWICE).returncode == 0
    assert_whole(tmp_path, undisturbed)


@pytest.mark.slow
def test_a_variant_that_raises_is_a_failed_run_and_the_others_are_done(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from registry import register\n"
        "from variants.positions import Position\n"
        "@register\n"
        "class Broken(Position):\n"
        "    name = 'broken'\n"
        "    def embed(self, index):\n"
        "        raise RuntimeError('no such luck')\n"
        "@register\n"
        "class Leaving(Position):\n"
        "    name = 'leaving'\n"
        "    def embed(self, index):\n"
        "        raise SystemExit(3)\n"
    )
    words = [word.replace("rope,none", "broken,leaving,none") for word in BRIEF]

    done = call(tmp_path, *words, "--set=training.steps=3", "--import=broken.py")

    assert done.returncode == 1
    assert "RuntimeError: no such luck" in done.stderr
    assert "SystemExit: 3" in done.stderr
    assert "4 runs failed. Run the same command to retry them." in done.stderr
    assert "Traceback" not in done.stderr
    assert "broken has no result: 2 of 2 tuning runs failed." in " ".join(done.stdout.split())
    statuses = "select arm, status, count(*) from es_runs group by 1, 2"
    assert ask(tmp_path, statuses) == [
        ("broken", "failed", 2),
        ("leaving", "failed", 2),
        ("none", "done", 4),
    ]


@pytest.mark.slow
def test_training_that_diverges_is_a_result(tmp_path: Path) -> None:
    words = [word for word in BRIEF if "learning_rates" not in word]

    done = call(
        tmp_path, *words, "--set=training.steps=40",
        "--set=training={learning_rate: 1e30, clip_norm: null}",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    told = "2 of 2 seeds diverged and count as ones that learned nothing."
    assert " ".join(done.stdout.split()).count(told) == 2
    stored = ask(tmp_path, "select distinct status, reason from es_runs")
    assert all(status == "diverged" and "is not finite" in reason for status, reason in stored)
    assert ask(tmp_path, "select distinct imputed from es_scores") == [(1,)]
    skills = ask(tmp_path, "select distinct value from es_scores where metric = 'skill'")
    assert skills == [(0.0,)]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--arms=roep"], "--arms (roep): no position is named 'roep'; did you mean 'rope'?"),
        (["--budget=quik"], "no budget is named 'quik'; did you mean 'quick'?"),
        (["--set=training.stepps=3"], "unknown key 'stepps'; did you mean 'steps'?"),
        (["--set=training.steps"], "expected dotted.key=value; got 'training.steps'"),
        (["--import=nowhere.py"], "nowhere.py: no such file"),
        (["--config=nowhere.yaml"], "nowhere.yaml"),
        (["--storage=sqlite:///no/such/folder.db"], "no/such"),
        (["--storage=nonsense"], "'nonsense' is not a database URL"),
        (["--rerun=alibi", "--arms=rope"], "no arm of this call is named 'alibi'"),
    ],
)  # fmt: skip
def test_bad_input_ends_with_code_2_and_trains_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    code = call_here("--budget=smoke", *words)

    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert told in err
    assert list(here.glob("*.db")) == []


def test_a_plan_and_a_description_do_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call_here(*BRIEF, "--set=training.steps=5", "--plan") == 0
    planned = capsys.readouterr().out
    assert call_here(*BRIEF, "--describe") == 0
    described = capsys.readouterr().out

    assert "2 tuning + 2 confirming runs of 5 steps" in planned
    assert "Dry run: nothing was executed." in planned
    assert "Which position encodings still work" in described
    assert "learning_rates: [0.003, 0.01]" in described
    assert list(here.iterdir()) == []


def test_json_of_the_scores_is_one_array(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    where = 'position == "rope" and length >= 24 and metric == "accuracy"'
    done = subprocess.run(
        [sys.executable, "-m", "store", "scores", "--where", where, "--format", "json"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip

    rows = json.loads(done.stdout)

    assert [(row["arm"], row["length"], row["metric"]) for row in rows] == [
        ("rope", 24, "accuracy")
    ] * 2
