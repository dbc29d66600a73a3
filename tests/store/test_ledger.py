"""Runs are planned once, claimed once, and written by their owner alone."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import store.database
from store.errors import StoreError
from store.ledger import Ledger
from store.records import PlannedRun
from tests.messages import Messages

MakeRun = Callable[..., PlannedRun]


@pytest.fixture
def ledger(any_ledger: Ledger) -> Ledger:
    return any_ledger


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


def test_plan_returns_ids_in_the_order_given(ledger: Ledger, make_run: MakeRun) -> None:
    first = ledger.plan([make_run(seed) for seed in (3, 1, 2)])
    again = ledger.plan([make_run(seed) for seed in (2, 3, 7, 1, 2)])
    assert again == [first[2], first[0], 4, first[1], first[2]]


def test_plan_leaves_existing_runs_alone(ledger: Ledger, make_run: MakeRun) -> None:
    (run_id,) = ledger.plan([make_run()])
    claim = ledger.claim("w", [run_id])
    assert claim is not None
    before = ledger.runs([run_id])
    ledger.plan([make_run(priority=9, arm="rope", steps=99)])
    assert ledger.runs([run_id]) == before


def test_plan_of_nothing_is_nothing(ledger: Ledger) -> None:
    assert ledger.plan([]) == []


def test_one_bad_run_keeps_all_out(messages: Messages, ledger: Ledger, make_run: MakeRun) -> None:
    with messages.raises(StoreError):
        ledger.plan([make_run(0), make_run(1, config={"a": np.zeros(2)})])
    assert ledger.runs([1, 2]) == []


def test_unknown_environment_is_refused(ledger: Ledger, make_run: MakeRun) -> None:
    with pytest.raises(StoreError, match=r"(?i)foreign key"):
        ledger.plan([make_run(environment_id=99)])


def test_unknown_phase_is_refused(messages: Messages, ledger: Ledger, make_run: MakeRun) -> None:
    with messages.raises(StoreError):
        ledger.plan([make_run(phase="confrim")])


def test_a_seed_beyond_64_bits_is_refused(
    messages: Messages, ledger: Ledger, make_run: MakeRun
) -> None:
    with messages.raises(StoreError):
        ledger.plan([make_run(2**63)])


def test_claims_go_by_priority_then_id(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run(seed, priority=seed % 2) for seed in range(4)])
    claimed = [ledger.claim("w", ids) for _ in range(5)]
    assert [claim and claim.run.seed for claim in claimed] == [0, 2, 1, 3, None]


def test_claims_stay_among_the_ids_named(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run(seed) for seed in range(3)])
    claim = ledger.claim("w", ids[1:2])
    assert claim is not None
    assert claim.run.id == ids[1]
    assert ledger.claim("w", ids[1:2]) is None
    assert ledger.claim("w", []) is None


def test_thousands_of_ids_fit(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run(seed, priority=-seed) for seed in range(2000)])
    claim = ledger.claim("w", ids)
    assert claim is not None
    assert claim.run.seed == 1999
    assert ledger.counts(ids)["planned"] == 1999
    assert len(ledger.runs(ids)) == 2000
    assert ledger.reset(ids) == 0
    assert ledger.scores(list(range(40_000))) == []


def test_a_claim_knows_what_to_do(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run(5)])
    claim = ledger.claim("w", ids)
    assert claim is not None
    run = claim.run
    assert (run.status, run.attempt, run.worker, run.seed) == ("running", 1, "w", 5)
    assert run.config == make_run(5).config
    assert run.started_at is not None
    assert run.started_at.utcoffset() is not None


def test_a_zombie_cannot_write(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run()])
    zombie = ledger.claim("w1", ids, lease_seconds=0.0)
    assert zombie is not None
    assert [run.worker for run in ledger.recover(ids, lambda worker: True)] == ["w1"]
    assert not ledger.finish(zombie, "done", scores=[a_score(value=0.1)])
    heir = ledger.claim("w2", ids)
    assert heir is not None
    assert heir.attempt == 2
    assert not ledger.finish(zombie, "done", scores=[a_score(value=0.1)])
    assert not ledger.renew(zombie)
    assert not ledger.attach_trial(zombie, "s", 1)
    ledger.release(zombie)
    assert ledger.finish(heir, "done", scores=[a_score(value=0.9)])
    assert not ledger.finish(heir, "failed", reason="again")
    assert [score.value for score in ledger.scores(ids)] == [0.9]


def test_a_claim_from_before_a_reset_is_void(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run()])
    old = ledger.claim("w", ids)
    assert old is not None
    ledger.finish(old, "failed", reason="first")
    assert ledger.reset(ids) == 1
    new = ledger.claim("w", ids)
    assert new is not None
    assert (new.attempt, new.worker) == (old.attempt, old.worker)
    assert not ledger.finish(old, "done")


def test_a_release_keeps_the_attempt(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run()])
    claim = ledger.claim("w", ids)
    assert claim is not None
    ledger.release(claim)
    (run,) = ledger.runs(ids)
    assert (run.status, run.attempt, run.worker, run.started_at) == ("planned", 1, None, None)


def test_recover_spares_the_living_and_the_renewed(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run(seed) for seed in range(3)])
    late, alive, dead = (
        ledger.claim(worker, ids, lease_seconds=lease)
        for worker, lease in (("late", 0.0), ("alive", 60.0), ("dead", 60.0))
    )
    assert late is not None
    assert ledger.renew(late)
    lost = ledger.recover(ids, lambda worker: worker != "dead")
    assert [run.worker for run in lost] == ["dead"]
    assert ledger.counts(ids) == {
        **{"planned": 1, "running": 2},
        **{"done": 0, "diverged": 0, "failed": 0, "not_applicable": 0},
    }
    assert alive is not None
    assert dead is not None


def test_recover_gives_up_after_the_last_attempt(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run()])
    for _ in range(2):
        ledger.claim("w", ids)
        assert len(ledger.recover(ids, lambda worker: False, max_attempts=2)) == 1
    (run,) = ledger.runs(ids)
    assert (run.status, run.attempt) == ("failed", 2)
    assert run.reason == "its worker was lost in each of 2 attempts, the last was w"


def test_reset_plans_anew_without_old_results(ledger: Ledger, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run(0), make_run(1)])
    done, failed = ledger.claim("w", ids), ledger.claim("w", ids)
    assert done is not None
    assert failed is not None
    ledger.finish(done, "done", scores=[a_score()], curves=[{"step": 1, "metric": "l", "value": 1}])
    ledger.finish(failed, "failed", reason="MemoryError")
    assert ledger.reset(ids) == 1
    assert ledger.counts(ids)["done"] == 1
    assert ledger.reset(ids, ("done",)) == 1
    assert ledger.scores(ids) == []
    for run in ledger.runs(ids):
        assert (run.status, run.attempt, run.reason, run.finished_at) == ("planned", 0, None, None)


def test_reset_takes_finished_runs_only(messages: Messages, ledger: Ledger) -> None:
    with messages.raises(StoreError):
        ledger.reset([1], ("running",))


def test_a_lock_is_waited_for_again(
    messages: Messages, url: str, path: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.database, "BUSY_SECONDS", 0)
    ledger = Ledger.create(url)
    ids = ledger.plan([make_run()])
    claim = ledger.claim("w", ids)
    assert claim is not None
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            other.execute("ROLLBACK")

    monkeypatch.setattr(store.database.time, "sleep", pause)
    assert ledger.finish(claim, "done", scores=[a_score()])
    assert len(pauses) == 3
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(store.database.time, "sleep", lambda seconds: None)
    with messages.raises(StoreError):
        ledger.reset(ids, ("done",))
    other.close()
    assert ledger.counts(ids)["done"] == 1
    ledger.close()
