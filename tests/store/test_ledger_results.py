"""What is written: whole, checked before, and as it was given."""

import math
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from store.errors import StoreError
from store.ledger import Ledger
from store.records import PlannedRun, Score
from tests.messages import Messages

MakeRun = Callable[..., PlannedRun]


def a_score(**changes: Any) -> dict[str, Any]:
    score = {
        "split": "test",
        "length": 8,
        "metric": "accuracy",
        "n": 4,
        "correct": 3,
        "value": 0.75,
    }
    return {**score, **changes}


def test_finish_writes_everything_at_once(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run(provenance={"commit": "abc"})])
    claim = ledger.claim("w", ids)
    assert claim is not None
    assert ledger.attach_trial(claim, "reach-rope", 7)
    done = ledger.finish(
        claim,
        "done",
        scores=[a_score()],
        curves=[{"step": 1, "metric": "loss", "value": 2.5}],
        wall_seconds=1.5,
        cpu_seconds=2.0,
        peak_bytes=1024,
        parameters=99,
        provenance={"threads": 1},
    )
    assert done
    (run,) = ledger.runs(ids)
    assert (run.status, run.wall_seconds, run.cpu_seconds, run.peak_bytes) == ("done", 1.5, 2, 1024)
    assert (run.parameters, run.optuna_study, run.optuna_trial) == (99, "reach-rope", 7)
    assert run.provenance == {"commit": "abc", "threads": 1}
    assert run.finished_at is not None
    assert run.started_at == claim.run.started_at
    assert [score.value for score in ledger.scores(ids)] == [0.75]


def test_a_score_that_was_read_can_be_written(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run(0), make_run(1)])
    first, second = ledger.claim("w", ids), ledger.claim("w", ids)
    assert first is not None
    assert second is not None
    ledger.finish(first, "done", scores=[a_score(bin=2)])
    ledger.finish(second, "done", scores=ledger.scores(ids))
    assert [
        replace(score, run_id=0, seed=0, created_at=None) for score in ledger.scores(ids)
    ] == 2 * [Score(0, "reach", "copy", "rope", "confirm", 0, "test", 8, "accuracy", 2, 4, 3, 0.75)]


def test_numbers_that_are_not_finite_keep_their_name(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run()])
    claim = ledger.claim("w", ids)
    assert claim is not None
    values = [float("nan"), np.float32("inf"), -np.inf, np.float32(0.5), None, 2]
    scores = [a_score(length=length, value=value) for length, value in enumerate(values)]
    curve = [{"step": np.int64(1), "metric": "loss", "value": float("nan")}]
    assert ledger.finish(claim, "diverged", scores=scores, curves=curve)
    kept = [(score.value, score.status) for score in ledger.scores(ids)]
    assert kept == [
        *((None, "nan"), (None, "inf"), (None, "-inf")),
        *((0.5, None), (None, None), (2.0, None)),
    ]


@pytest.mark.parametrize("kind", [torch.tensor, np.array, np.float64], ids=lambda one: one.__name__)
def test_a_single_number_is_kept_whatever_library_it_comes_from(
    ledger: Ledger, make_run: MakeRun, kind: Any
) -> None:
    ids = ledger.plan([make_run()])
    claim = ledger.claim("w", ids)
    assert claim is not None
    whole = kind(4) if kind is not np.float64 else np.int64(4)
    scores = [a_score(n=whole, value=kind(0.5)), a_score(length=9, value=kind(math.nan))]
    curve = [{"step": 1, "metric": "loss", "value": kind(0.25)}]
    assert ledger.finish(claim, "done", scores=scores, curves=curve)
    kept = [(one.n, type(one.n), one.value, one.status) for one in ledger.scores(ids)]
    assert kept == [(4, int, 0.5, None), (4, int, None, "nan")]


@pytest.mark.parametrize(
    "scores",
    [
        [a_score(value=np.zeros(1))],
        [a_score(value=torch.zeros(1))],
        [a_score(value="0.5")],
        [a_score(value=True)],
        [a_score(length=8.0)],
        [a_score(metric=None)],
        [a_score(lenght=1)],
        [{"split": "test", "metric": "nll", "n": 1}],
        [a_score(), a_score()],
        [3],
    ],
)
def test_bad_scores_leave_the_run_as_it_was(
    messages: Messages, ledger: Ledger, make_run: MakeRun, scores: list[Any]
) -> None:
    ids = ledger.plan([make_run()])
    claim = ledger.claim("w", ids)
    assert claim is not None
    with messages.raises(StoreError):
        ledger.finish(claim, "done", scores=scores)
    assert ledger.counts(ids)["running"] == 1
    assert ledger.finish(claim, "done")


def test_repeated_curve_steps_are_refused(
    messages: Messages, ledger: Ledger, make_run: MakeRun
) -> None:
    claim = ledger.claim("w", ledger.plan([make_run()]))
    assert claim is not None
    points = [{"step": 2, "metric": "loss", "value": value} for value in (3.0, 4.0)]
    with messages.raises(StoreError):
        ledger.finish(claim, "done", curves=points)


def test_only_finished_statuses_finish(
    messages: Messages, ledger: Ledger, make_run: MakeRun
) -> None:
    claim = ledger.claim("w", ledger.plan([make_run()]))
    assert claim is not None
    with messages.raises(StoreError):
        ledger.finish(claim, "dnoe")


def test_any_text_can_be_a_reason(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run()])
    claim = ledger.claim("w", ids)
    assert claim is not None
    assert ledger.finish(claim, "failed", reason="file \udcff\0 'é' \U0001f600")
    assert ledger.runs(ids)[0].reason == "file ?\\0 'é' \U0001f600"


def test_an_environment_is_stored_once(ledger: Ledger) -> None:
    first = ledger.environment({"a": 1, "b": [2.5]})
    assert ledger.environment({"b": [2.5], "a": 1}) == first
    assert ledger.environment({"a": 2}) != first


def test_a_study_can_be_described_before_and_after(
    ledger: Ledger, make_run: MakeRun, path: Path
) -> None:
    assert ledger.describe_study("early", "first") is None
    ledger.plan([make_run()])
    assert ledger.describe_study("reach", "old") is None
    assert ledger.describe_study("reach", "How far?") == "old"
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT name, description FROM es_studies ORDER BY name")
        assert rows.fetchall() == [("early", "first"), ("reach", "How far?")]
    connection.close()
