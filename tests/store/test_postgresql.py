"""A server keeps what a file keeps, answers alike, and lets nothing more through."""

import hashlib
import math
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import optuna
import pytest
from typer.testing import CliRunner

from store import Component, Ledger, Results, StoreError
from store.__main__ import command_line
from store.maintenance import backup, check
from store.records import PlannedRun
from store.sql import read_sql

MakeRun = Callable[..., PlannedRun]
ROOT = Path(__file__).resolve().parents[2]
AWKWARD = "größer – 🙂 'quoted' \"twice\" 100 %"
PARTS = (Component("position", "rope", "variants.positions.rope:RoPE", "ab"),)
CODE = hashlib.sha256(b'{"position rope":"ab"}').hexdigest()


def fill(url: str, make_run: MakeRun) -> None:
    """Two arms tuned and confirmed, and a run for each bad end."""
    ledger = Ledger.create(url)
    place = ledger.environment({"python": "3.11", "name": AWKWARD})
    planned = [
        make_run(
            seed,
            arm=arm,
            phase=phase,
            identity=f"{arm} {phase} {rate} {seed}",
            config_hash=f"{arm} {rate}",
            config={
                "encoder": {"position": {"name": arm}, "bias": arm == "rope"},
                "training": {"learning_rate": rate, "train_lengths": [2, 8]},
            },
            environment_id=place,
            code_hash=CODE,
            components=PARTS,
            provenance={"note": AWKWARD, "long": "x" * 100_000, "tuple": (1, 2)},
        )
        for arm in ("rope", "none")
        for phase, rates in (("tune", (0.1, 0.2)), ("confirm", (0.1,)))
        for rate in rates
        for seed in (0, 1, 2)
    ]
    ids = ledger.plan(planned)
    bad = ledger.plan([make_run(seed, arm="bad", identity=f"bad {seed}") for seed in (0, 1, 2)])
    while claim := ledger.claim("w", ids):
        ledger.finish(
            claim,
            "done",
            scores=measured(claim.run.seed, claim.run.arm),
            curves=[{"step": step, "metric": "loss", "value": 1 / step} for step in (1, 2, 3)],
            wall_seconds=2.0,
            parameters=2**40,
        )
    for status in ("diverged", "failed"):
        claim = ledger.claim("w", bad)
        assert claim is not None
        lost = {"split": "test", "length": 8, "metric": "accuracy", "n": 4, "value": math.nan}
        ledger.finish(claim, status, reason=AWKWARD, scores=[lost])
    ledger.freeze("reach", {"seeds": 3})
    ledger.close()


def measured(seed: int, arm: str) -> list[dict[str, Any]]:
    right = (4 if arm == "rope" else 2) - seed % 2
    whole = {"split": "test", "metric": "accuracy", "n": 4, "correct": right, "value": right / 4}
    nll = {"split": "validation", "metric": "nll", "n": 4, "value": 1.0 / right}
    rows = [{**one, "length": length} for one in (whole, nll) for length in (8, 16)]
    return [*rows, {**whole, "length": 8, "bin": 3}]


QUESTIONS: dict[str, Callable[[Results], Any]] = {
    "runs": lambda results: [untimed(run) for run in results.runs(phase="all")],
    "runs sorted": lambda results: [run.id for run in results.runs(sort="-training.learning_rate")],
    "scores": lambda results: [untimed(score) for score in results.scores(phase="all")],
    "scores sorted": lambda results: [
        (score.run_id, score.value) for score in results.scores(sort="-value", limit=5)
    ],
    "curves": lambda results: results.curves(where="step > 1"),
    "summary": lambda results: results.summary(["position", "length"]),
    "summary over lengths": lambda results: results.summary(["arm"], metric="accuracy"),
    "summary by option": lambda results: results.summary(["encoder.bias"], phase="all"),
    "below": lambda results: results.below(0.7),
    "best": lambda results: results.best(),
    "cost": lambda results: results.cost(),
    "failures": lambda results: results.failures(),
    "changed": lambda results: results.changed(),
    "counts": lambda results: results.counts(),
    "environment": lambda results: results.environment(1),
    "parts": lambda results: results.components(CODE),
    "protocols": lambda results: [(one.hash, one.protocol) for one in results.protocols()],
}


def untimed(record: Any) -> dict[str, Any]:
    times = ("created_at", "started_at", "finished_at")
    return {name: value for name, value in vars(record).items() if name not in times}


def rounded(answer: Any) -> Any:
    """To 12 digits: SQLite sums values that it has written with 15."""
    if isinstance(answer, float):
        return float(f"{answer:.12g}")
    if isinstance(answer, Mapping):
        return {name: rounded(value) for name, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [rounded(each) for each in answer]
    return rounded(vars(answer)) if is_dataclass(answer) else answer


def test_a_server_answers_as_a_file_does(server_url: str, url: str, make_run: MakeRun) -> None:
    for place in (url, server_url):
        fill(place, make_run)
    here, there = Results(url), Results(server_url)
    for name, ask in QUESTIONS.items():
        assert rounded(ask(there)) == rounded(ask(here)), name
    assert len(there.runs(phase="all")) == 21
    for results in (here, there):
        results.close()
    assert check(server_url)[0] == check(url)[0] == []


def test_times_of_a_server_are_instants(server_url: str, make_run: MakeRun) -> None:
    fill(server_url, make_run)
    results = Results(server_url)
    run = results.runs()[0]
    results.close()
    assert run.started_at is not None
    assert run.finished_at is not None
    assert run.created_at.utcoffset() == run.started_at.utcoffset()
    assert run.created_at <= run.started_at <= run.finished_at


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("delete from es_runs", "only statements that read"),
        ("select 1; delete from es_runs", "one statement at a time"),
        ("with gone as (delete from es_runs returning id) select * from gone", "data-modifying"),
        ("select pg_advisory_lock(1) from nothing", "nothing"),
        ("table es_runs limit", "syntax error"),
        ("", "only statements that read"),
    ],
)
def test_sql_on_a_server_reads_only(server_url: str, query: str, message: str) -> None:
    Ledger.create(server_url).close()
    with pytest.raises(StoreError, match=message), read_sql(server_url, query) as (_, rows):
        list(rows)


def test_sql_on_a_server_reads_the_views(server_url: str, make_run: MakeRun) -> None:
    fill(server_url, make_run)
    query = "select arm, count(*) as n from results where metric = 'accuracy' group by 1 order by 1"
    with read_sql(server_url, query) as (columns, rows):
        assert columns == ["arm", "n"]
        assert [tuple(row) for row in rows] == [("bad", 2), ("none", 18), ("rope", 18)]


def test_optuna_keeps_its_trials_beside_ours(server_url: str, make_run: MakeRun) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = optuna.storages.RDBStorage(server_url)
    study = optuna.create_study(study_name="ours", storage=storage)
    trial = study.ask({"rate": optuna.distributions.FloatDistribution(0, 1)})
    ledger = Ledger.create(server_url)
    claim = ledger.claim("w", ledger.plan([make_run(phase="tune")]))
    assert claim is not None
    ledger.attach_trial(claim, "ours", trial.number)
    trial.set_user_attr("run", claim.run.id)
    score = {"split": "validation", "length": 8, "metric": "nll", "n": 4, "value": 0.5}
    ledger.finish(claim, "done", scores=[score])
    ledger.close()
    study.tell(trial, 0.5)
    assert check(server_url)[0] == []

    optuna.delete_study(study_name="ours", storage=storage)

    assert [one.problem for one in check(server_url)[0]] == [
        "its trial 0 of 'ours' is not in Optuna's tables"
    ]
    storage.remove_session()
    storage.engine.dispose()


def test_what_a_server_refuses_is_one_line_without_the_password(server_url: str) -> None:
    for url, message in (
        ("postgresql+psycopg://me:geheim@127.0.0.1:1/x", "Connection refused"),
        (server_url.replace("/sandbox_", "/nothing_"), "does not exist"),
        (server_url, "holds no encoder-sandbox tables"),
    ):
        result = CliRunner().invoke(command_line(), ["runs", "--storage", url])
        assert result.exit_code == 2
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
        assert "geheim" not in result.stderr


def test_a_server_is_copied_by_its_own_program(server_url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="use pg_dump for PostgreSQL"):
        backup(server_url, str(tmp_path / "copy.db"))


@pytest.mark.slow
def test_a_study_runs_on_a_server(server_url: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "studies.extrapolation", "--budget", "smoke"]
    words = ["--arms", "none,rope", "--workers", "2", "--storage", server_url]
    done = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = Results(server_url)
    counts = results.counts()["extrapolation"]
    assert set(counts) == {"done"}
    assert {one.arm for one in results.best()} == {"none", "rope"}
    assert {one.group["arm"] for one in results.summary(metric="accuracy")} == {"none", "rope"}
    results.close()
    assert check(server_url)[0] == []
    again = subprocess.run(
        [*command, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    after = Results(server_url)
    assert after.counts()["extrapolation"] == counts
    after.close()
