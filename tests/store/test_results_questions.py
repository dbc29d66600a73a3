"""Questions are answered with the numbers that a sheet of paper gives."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from store import Component, Ledger, Results, StoreError
from store.aggregate import t_interval
from store.provenance import present_hash
from store.records import PlannedRun
from store.source_code import hash_of_file, hash_of_source
from tests.messages import Messages
from tests.store.conftest import make_choice

MakeRun = Callable[..., PlannedRun]


@pytest.fixture
def url(any_url: str) -> str:
    return any_url


@pytest.fixture
def ledger(any_ledger: Ledger) -> Ledger:
    return any_ledger


# value by arm, length and seed; the floor of a task of four answers is 0.25
VALUES = {
    "rope": {16: (1.0, 0.98), 32: (0.97, 0.95), 64: (0.85, 0.91)},
    "alibi": {16: (0.95, 0.97), 32: (0.93, 0.91), 64: (0.95, 0.91)},
    "none": {16: (0.40, 0.30), 32: (0.25, 0.25), 64: (0.25, None)},
}


def config_of(arm: str, **training: Any) -> dict[str, Any]:
    return {
        "encoder": {"position": {"name": arm}},
        "task": {"name": "copy"},
        "training": {"train_lengths": [2, 16], "learning_rate": 0.1, **training},
    }


def measured(arm: str, seed: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for length, values in VALUES[arm].items():
        value = values[seed]
        skill = None if value is None else (value - 0.25) / 0.75
        for metric, number in (("accuracy", value), ("skill", skill), ("floor", 0.25)):
            row = {"split": "test", "length": length, "metric": metric, "n": 100, "value": number}
            rows.append(row)
    return rows


@pytest.fixture
def results(ledger: Ledger, make_run: MakeRun, url: str) -> Iterator[Results]:
    """Three arms on two seeds; seconds grow with the arm."""
    for cost, arm in enumerate(VALUES, 1):
        for seed in (0, 1):
            (number,) = ledger.plan(
                [make_run(seed, arm=arm, config=config_of(arm), config_hash=arm)]
            )
            claim = ledger.claim("w", [number])
            assert claim is not None
            ledger.finish(
                claim, "done", scores=measured(arm, seed), wall_seconds=10.0 * cost, parameters=7
            )
    results = Results(url)
    yield results
    results.close()


def test_a_summary_is_the_mean_over_seeds_with_its_interval(results: Results) -> None:
    found = results.summary(["position", "length"], metric="accuracy")
    assert found.columns()[:4] == ["position", "length", "split", "metric"]
    by_key = {(one.group["position"], one.group["length"]): one for one in found}
    expected = t_interval([0.97, 0.95])
    one = by_key["rope", 32]
    assert (one.mean, one.low, one.high) == pytest.approx(
        (expected.mean, expected.low, expected.high)
    )
    assert (one.method, one.seeds, one.runs, one.missing, one.mixed) == ("t, 95 %", 2, 2, 0, None)
    lost = by_key["none", 64]
    assert (lost.mean, lost.low, lost.method, lost.seeds, lost.missing) == (0.25, None, None, 1, 1)


def test_a_summary_tells_the_floor(results: Results) -> None:
    floors = {"accuracy": 0.25, "skill": 0.0, "floor": 0.25}
    for one in results.summary(["arm", "length"]):
        assert one.floor == floors[one.metric]
    assert {one.floor for one in results.summary(["arm"], metric="accuracy")} == {None}


def test_a_summary_over_lengths_leaves_out_a_run_that_lacks_one(results: Results) -> None:
    (none,) = results.summary(["arm"], metric="accuracy", arm="none")
    assert (none.mean, none.seeds, none.runs, none.missing) == (pytest.approx(0.3), 1, 2, 1)
    (rope,) = results.summary(["arm"], metric="accuracy", arm="rope")
    assert rope.mean == pytest.approx(((1 + 0.97 + 0.85) / 3 + (0.98 + 0.95 + 0.91) / 3) / 2)


def test_a_seed_counts_once_and_the_mixture_is_named(
    results: Results, ledger: Ledger, make_run: MakeRun
) -> None:
    longer = config_of("rope", learning_rate=0.2)
    (number,) = ledger.plan([make_run(0, arm="rope", config=longer, identity="x")])
    claim = ledger.claim("w", [number])
    assert claim is not None
    score = {"split": "test", "length": 16, "metric": "accuracy", "n": 100, "value": 0.5}
    ledger.finish(claim, "done", scores=[score])

    (one,) = results.summary(["arm"], metric="accuracy", arm="rope", length=16)

    assert (one.seeds, one.runs, one.mixed) == (2, 3, "training.learning_rate")
    assert one.mean == pytest.approx(((1.0 + 0.5) / 2 + 0.98) / 2)
    apart = results.summary(["training.learning_rate"], metric="accuracy", arm="rope", length=16)
    assert [one.group["training.learning_rate"] for one in apart] == [0.1, 0.2]
    (all_of_them,) = results.summary(["length"], metric="accuracy", length=16)
    assert all_of_them.mixed == "arm, training.learning_rate"


def test_a_seed_that_one_config_was_run_with_twice_counts_once(
    ledger: Ledger, make_run: MakeRun, url: str
) -> None:
    for seed, value in ((0, 0.5), (0, 1.0), (1, 0.25)):
        run = make_run(seed, identity=f"{seed} {value}")
        claim = ledger.claim("w", ledger.plan([run]))
        assert claim is not None
        score = {"split": "test", "length": 8, "metric": "accuracy", "n": 4, "value": value}
        ledger.finish(claim, "done", scores=[score])
    results = Results(url)
    (one,) = results.summary()
    results.close()
    assert (one.mean, one.seeds, one.runs) == (0.5, 2, 3)


def test_a_name_that_nothing_has_is_refused(messages: Messages, results: Results) -> None:
    with messages.raises(StoreError):
        results.summary(["positon"])


def test_the_length_at_which_an_arm_falls_is_told(results: Results) -> None:
    told = {one.arm: one for one in results.below(0.9)}
    assert told["rope"].verdict == "falls below 0.9 at 64"
    assert (told["rope"].holds_to, told["rope"].falls_at, told["rope"].seeds_above) == (32, 64, 1)
    assert told["rope"].value == pytest.approx(0.88)
    assert told["alibi"].verdict == "holds to 64"
    assert (told["alibi"].holds_to, told["alibi"].falls_at) == (64, None)
    assert told["none"].verdict == "below 0.9 where trained"
    assert (told["none"].holds_to, told["none"].falls_at) == (None, 16)


def test_a_diverged_seed_counts_with_the_scores_that_it_is_given(
    results: Results, ledger: Ledger, make_run: MakeRun
) -> None:
    (number,) = ledger.plan([make_run(2, arm="rope", config=config_of("rope"), config_hash="rope")])
    claim = ledger.claim("w", [number])
    assert claim is not None
    lost = {"split": "test", "n": 100, "imputed": True}
    scores = [
        {**lost, "length": length, "metric": metric, "value": value}
        for length in VALUES["rope"]
        for metric, value in (("accuracy", 0.25), ("skill", 0.0), ("floor", 0.25))
    ]
    ledger.finish(claim, "diverged", reason="nan at step 3", scores=scores)

    told = {one.arm: one for one in results.below(0.9)}["rope"]
    assert (told.verdict, told.seeds, told.seeds_above) == ("below 0.9 where trained", 3, 2)
    assert told.value == pytest.approx((1.0 + 0.98 + 0.25) / 3)
    (one,) = results.summary(metric="accuracy", arm="rope", length=64)
    assert (one.seeds, one.floor) == (3, 0.25)
    assert one.mean == pytest.approx((0.85 + 0.91 + 0.25) / 3)
    (cost,) = results.cost(arm="rope", length=64)
    assert (cost.value, cost.wall_seconds) == (one.mean, 10.0)
    imputed = results.scores(where="imputed == True")
    assert {score.run_id for score in imputed} == {number}
    assert len(imputed) == 9


def test_where_nothing_was_measured_an_arm_is_not_said_to_fall(
    results: Results, ledger: Ledger, make_run: MakeRun
) -> None:
    for seed in (0, 1):
        claim = ledger.claim("w", ledger.plan([make_run(seed, arm="table")]))
        assert claim is not None
        test = {"split": "test", "metric": "accuracy", "n": 100}
        scores = [{**test, "length": length, "value": 0.95} for length in (16, 32)]
        ledger.finish(claim, "done", scores=[*scores, {**test, "length": 64, "value": None}])
    (one,) = results.below(0.9, arm="table")
    assert (one.verdict, one.holds_to, one.falls_at) == (
        *("holds to 32; not measured at 64", 32),
        None,
    )
    assert (one.value, one.seeds) == (0.95, 2)


def test_an_arm_is_efficient_when_none_is_cheaper_and_better(results: Results) -> None:
    told = {one.arm: one for one in results.cost(length=64)}
    assert [told[arm].wall_seconds for arm in ("rope", "alibi", "none")] == [10.0, 20.0, 30.0]
    assert [told[arm].efficient for arm in ("rope", "alibi", "none")] == [True, True, False]
    assert told["rope"].value == pytest.approx(0.88)


def test_failures_are_told_by_arm_and_reason(
    results: Results, ledger: Ledger, make_run: MakeRun
) -> None:
    ids = ledger.plan([make_run(seed, arm="rope", config=config_of("rope")) for seed in (7, 8, 9)])
    for status, reason in (("diverged", "nan at step 3"), ("diverged", "nan at step 3")):
        claim = ledger.claim("w", ids)
        assert claim is not None
        ledger.finish(claim, status, reason=reason)
    (one,) = results.failures()
    assert (one.arm, one.status, one.reason) == ("rope", "diverged", "nan at step 3")
    assert (one.runs, one.of, one.first_run) == (2, 4, ids[0])


def test_superseded_runs_are_marked_and_may_be_left_out(
    ledger: Ledger, make_run: MakeRun, url: str
) -> None:
    old = [make_run(seed, arm="rope", identity=f"old {seed}") for seed in (0, 1)]
    new = [make_run(seed, arm="rope", identity=f"new {seed}") for seed in (0, 1)]
    other = ledger.plan([make_run(0, arm="alibi")])
    before = ledger.plan(old)
    after = ledger.plan([old[1], *new])
    ledger.supersede(after)
    results = Results(url)
    assert {run.id for run in results.runs(current=True)} == {*other, *after}
    marked = results.runs(where="superseded == True")
    assert [run.id for run in marked] == before[:1]
    assert ledger.plan(old) == before
    ledger.supersede(before)
    assert {run.id for run in results.runs(where="superseded == True")} == set(after[1:])


def test_a_call_that_changes_nothing_writes_nothing(
    ledger: Ledger, make_run: MakeRun, path: Path
) -> None:
    planned = [make_run(seed) for seed in (0, 1)]
    ids = ledger.plan(planned)
    ledger.supersede(ids)
    for _ in ids:
        claim = ledger.claim("w", ids)
        assert claim is not None
        ledger.finish(claim, "done")
    facts = ledger.environment({"cpu": "x"})
    ledger.describe_study("reach", "How far?")
    chosen = ledger.choose(make_choice([(0.1, 1.0, ids)], 0))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # whoever writes now waits for a minute
        assert ledger.plan(planned) == ids
        ledger.supersede(ids)
        assert ledger.claim("w", ids) is None
        assert ledger.reset(ids) == 0
        assert ledger.recover(ids, lambda worker: False) == []
        assert ledger.environment({"cpu": "x"}) == facts
        assert ledger.describe_study("reach", "How far?") == "How far?"
        assert ledger.choose(make_choice([(0.1, 1.0, ids)], 0)) == chosen
        assert ledger.counts(ids)["done"] == 2


def test_a_changed_source_is_found_by_its_file(
    ledger: Ledger, make_run: MakeRun, url: str, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("first")
    origin, first = f"{mine}:Mine", hash_of_source(b"first")
    parts = (Component("position", "mine", origin, first),)
    gone = (Component("position", "gone", "no_such_module.at_all:Gone", "aa"),)
    ids = ledger.plan(
        [
            make_run(0, arm="mine", code_hash="c1", components=parts),
            make_run(1, arm="mine", code_hash="c1", components=parts),
            make_run(2, arm="gone", code_hash="c2", components=gone),
            make_run(3, arm="silent", code_hash=None),
        ]
    )
    results = Results(url)
    assert {one.state for one in results.changed()} == {"missing", "unknown"}

    mine.write_text("second")

    (one,) = [each for each in results.changed() if each.state == "changed"]
    assert (one.name, one.arms, one.run_ids) == ("mine", "mine", ids[:2])
    assert one.present_hash == hash_of_source(b"second")


def test_the_file_of_a_module_is_found_without_an_import() -> None:
    import sys

    root = Path(__file__).parents[2]
    loaded = set(sys.modules)
    file = root / "variants" / "positions" / "rope.py"
    found = present_hash("variants.positions.rope:RoPE")
    assert found == hash_of_file(file)
    assert set(sys.modules) - loaded <= {"variants"}
    assert present_hash("__main__:Mine") is None
    assert present_hash("variants.nothing:X") is None
