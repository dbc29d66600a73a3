"""What is kept around runs: frozen protocols, saved models, later scores, and their parts."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store import Component, Ledger, Results, StoreError
from store.records import PlannedRun
from tests.messages import Messages

MakeRun = Callable[..., PlannedRun]
DIGEST = "ab" * 32


def done(ledger: Ledger, run: PlannedRun, *scores: dict[str, Any]) -> int:
    ids = ledger.plan([run])
    claim = ledger.claim("w", ids)
    assert claim is not None
    assert ledger.finish(claim, "done", scores=scores)
    return ids[0]


def score(length: int, value: float, **changes: Any) -> dict[str, Any]:
    fields = {"split": "test", "length": length, "metric": "accuracy", "n": 10, "value": value}
    return {**fields, **changes}


def test_a_protocol_is_frozen_once(ledger: Ledger, url: str) -> None:
    first = ledger.freeze("reach", {"seeds": 8, "contrasts": [["rope", "none"]]})
    again = ledger.freeze("reach", {"contrasts": (("rope", "none"),), "seeds": 8})
    other = ledger.freeze("reach", {"seeds": 16, "contrasts": [["rope", "none"]]})

    assert again == first
    assert other.hash != first.hash
    assert other.created_at > first.created_at
    results = Results(url)
    assert list(results.protocols(study="reach")) == [first, other]
    assert len(results.protocols(study="another")) == 0
    assert list(results.protocols().frame()["hash"]) == [first.hash, other.hash]


def test_an_equal_protocol_of_another_study_is_another(ledger: Ledger, url: str) -> None:
    ledger.freeze("reach", {"seeds": 8})
    ledger.freeze("depth", {"seeds": 8})
    assert [one.study for one in Results(url).protocols()] == ["reach", "depth"]


def test_a_protocol_knows_whether_confirming_had_begun(ledger: Ledger, make_run: MakeRun) -> None:
    done(ledger, make_run(phase="tune"))
    planned = ledger.plan([make_run(seed=1)])
    assert not ledger.freeze("reach", {"plan": 1}).runs_before

    claim = ledger.claim("w", planned)
    assert claim is not None

    assert ledger.freeze("reach", {"plan": 2}).runs_before
    ledger.release(claim)
    assert ledger.freeze("reach", {"plan": 3}).runs_before
    assert not ledger.freeze("reach", {"plan": 1}).runs_before


def test_a_protocol_may_be_about_some_runs_alone(ledger: Ledger, make_run: MakeRun) -> None:
    old = done(ledger, make_run(seed=0))
    fresh = ledger.plan([make_run(seed=1)])
    assert not ledger.freeze("reach", {"plan": 1}, fresh).runs_before
    assert ledger.freeze("reach", {"plan": 2}, [old, *fresh]).runs_before


def test_a_protocol_that_cannot_be_stored_is_refused(
    messages: Messages, ledger: Ledger, url: str
) -> None:
    with messages.raises(StoreError):
        ledger.freeze("reach", {"arms": {"rope"}})
    assert len(Results(url).protocols()) == 0


def test_models_are_found_by_their_runs(ledger: Ledger, url: str, make_run: MakeRun) -> None:
    first, second = (done(ledger, make_run(seed)) for seed in (0, 1))
    ledger.save_model(second, path="models/2.safetensors", sha256=DIGEST, size_bytes=10)
    ledger.save_model(first, path="models/1.safetensors", sha256=DIGEST, size_bytes=10)
    ledger.save_model(first, path="models/1.safetensors", sha256="cd" * 32, size_bytes=11)

    models = Results(url).models(study="reach")

    assert [(model.run_id, model.path, model.size_bytes) for model in models] == [
        (first, "models/1.safetensors", 11),
        (second, "models/2.safetensors", 10),
    ]
    assert models[0].sha256 == "cd" * 32
    assert [model.run_id for model in Results(url).models(seed=1)] == [second]
    assert len(Results(url).models(arm="alibi")) == 0


def test_a_run_that_is_planned_anew_loses_its_model(
    ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    run_id = done(ledger, make_run())
    ledger.save_model(run_id, path="1.safetensors", sha256=DIGEST, size_bytes=10)
    ledger.reset([run_id], ["done"])
    assert len(Results(url).models()) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"run_id": 99},
        {"sha256": "short"},
        {"size_bytes": 2**63},
    ],
    ids=["run", "sha256", "size"],
)
def test_a_model_that_cannot_be_noted_is_refused(
    messages: Messages, ledger: Ledger, url: str, make_run: MakeRun, changes: dict[str, Any]
) -> None:
    run_id = done(ledger, make_run())
    given = {"run_id": run_id, "path": "p", "sha256": DIGEST, "size_bytes": 1, **changes}
    with messages.raises(StoreError):
        ledger.save_model(**given)
    assert len(Results(url).models()) == 0


def test_later_scores_join_the_first_ones(ledger: Ledger, url: str, make_run: MakeRun) -> None:
    run_id = done(ledger, make_run(), score(8, 0.5), score(8, 0.25, bin=0))
    ledger.add_scores(run_id, [score(8, 0.75), score(512, 0.125)], source="evaluate")

    found = {(one.length, one.bin): one for one in Results(url).scores()}

    assert {key: one.value for key, one in found.items()} == {
        (8, None): 0.75,
        (8, 0): 0.25,
        (512, None): 0.125,
    }
    assert [found[8, 0].source, found[8, None].source] == [None, "evaluate"]
    first, later = found[8, 0].created_at, found[512, None].created_at
    assert first is not None
    assert later is not None
    assert first < later


def test_later_scores_are_written_all_or_none(
    messages: Messages, ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    run_id = done(ledger, make_run(), score(8, 0.5))
    with messages.raises(StoreError):
        ledger.add_scores(run_id, [score(8, 0.75), score(8, 0.8)])
    with messages.raises(StoreError):
        ledger.add_scores(99, [score(8, 0.75)])
    waiting = ledger.plan([make_run(seed=1)])
    with messages.raises(StoreError):
        ledger.add_scores(waiting[0], [score(8, 0.75)])
    assert [one.value for one in Results(url).scores()] == [0.5]


keys = st.tuples(
    st.sampled_from(["test", "validation"]),
    st.integers(1, 3),
    st.sampled_from(["accuracy", "nll"]),
    st.none() | st.integers(-1, 1),
)
batches = st.lists(st.dictionaries(keys, st.floats(0, 1), max_size=8), max_size=4)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches)
def test_scores_added_in_batches_are_those_of_a_dict(
    ledger: Ledger, url: str, make_run: MakeRun, batches: list[dict[Any, float]]
) -> None:
    ids = ledger.plan([make_run()])
    ledger.reset(ids, ["done"])
    claim = ledger.claim("w", ids)
    assert claim is not None
    ledger.finish(claim, "done")
    for batch in batches:
        ledger.add_scores(
            ids[0],
            [
                score(length, value, split=split, metric=metric, bin=bin_)
                for (split, length, metric, bin_), value in batch.items()
            ],
        )
    expected = {key: value for batch in batches for key, value in batch.items()}
    found = [
        ((one.split, one.length, one.metric, one.bin), one.value) for one in ledger.scores(ids)
    ]
    assert sorted(found, key=repr) == sorted(expected.items(), key=repr)


def test_more_scores_than_fit_a_statement_are_replaced(ledger: Ledger, make_run: MakeRun) -> None:
    run_id = done(ledger, make_run(), *(score(length, 0.0) for length in range(1, 700)))
    ledger.add_scores(run_id, [score(length, 1.0) for length in range(1, 800)])
    values = [one.value for one in ledger.scores([run_id])]
    assert values == [1.0] * 799


PARTS = (
    Component("position", "rope", "variants.positions.rope:RoPE", "aa"),
    Component("task", "copy", "studies.tasks.copy:Copy", "bb"),
)


def test_the_parts_behind_a_run_are_kept_once(ledger: Ledger, url: str, make_run: MakeRun) -> None:
    ledger.plan([make_run(seed, code_hash="c1", components=PARTS) for seed in range(3)])
    changed = (Component("position", "rope", "variants.positions.rope:RoPE", "cc"), PARTS[1])
    ledger.plan([make_run(9, code_hash="c2", components=changed)])

    results = Results(url)

    assert results.components("c1") == list(PARTS)
    assert results.components("c2") == list(changed)
    assert results.components("c3") == []


def test_parts_need_the_hash_that_stands_for_them(
    messages: Messages, ledger: Ledger, make_run: MakeRun
) -> None:
    with messages.raises(StoreError):
        ledger.plan([make_run(components=PARTS)])


def test_a_waiting_run_takes_over_what_the_planner_knows_now(
    ledger: Ledger, make_run: MakeRun
) -> None:
    ids = ledger.plan([make_run(code_hash="old", provenance={"git": 1})])
    place = ledger.environment({"python": "3.12"})
    changed = make_run(code_hash="new", provenance={"git": 2}, environment_id=place)
    assert ledger.plan([changed]) == ids
    (run,) = ledger.runs(ids)
    assert (run.code_hash, run.provenance, run.environment_id) == ("new", {"git": 2}, place)


@pytest.mark.parametrize("status", ["running", "done", "failed"])
def test_a_run_that_has_begun_keeps_what_it_was_planned_with(
    ledger: Ledger, make_run: MakeRun, status: str
) -> None:
    ids = ledger.plan([make_run(code_hash="old", provenance={"git": 1})])
    claim = ledger.claim("w", ids)
    assert claim is not None
    if status != "running":
        ledger.finish(claim, status)
    ledger.plan([make_run(code_hash="new", provenance={"git": 2})])
    (run,) = ledger.runs(ids)
    assert (run.code_hash, run.provenance) == ("old", {"git": 1})
