"""What comes out: plain records, chosen by keywords, with a fixed table."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pandas as pd
import pytest

from store import Ledger, Results, Run, StoreError
from store.configs import flatten, varying
from store.records import PlannedRun
from tests.messages import Messages
from tests.store.conftest import make_choice

MakeRun = Callable[..., PlannedRun]
RUN_FIELDS = [
    *("id", "study", "task", "arm", "phase", "seed", "status", "reason", "config", "config_hash"),
    *("code_hash", "parameters", "steps", "attempt", "worker", "created_at", "started_at"),
    *("finished_at", "wall_seconds", "cpu_seconds", "peak_bytes", "optuna_study", "optuna_trial"),
    *("environment_id", "provenance"),
]
SCORE_FRAME = [
    *("run_id", "study", "task", "arm", "phase", "seed", "split", "length", "metric", "bin", "n"),
    *("correct", "value", "imputed"),
]


HIGHEST = {"training.learning_rate": "highest"}


def config_of(position: str, rate: float) -> dict[str, Any]:
    part = {"name": position, "theta": 10_000} if position == "rope" else {"name": position}
    return {"encoder": {"position": part}, "training": {"learning_rate": rate, "steps": 10}}


def scores_of(nll: float) -> list[dict[str, Any]]:
    return [
        {"split": split, "length": length, "metric": metric, "n": 4, "value": value}
        for split in ("validation", "test")
        for length in (8, 16)
        for metric, value in (("nll", nll * length), ("accuracy", 0.5))
    ]


@pytest.fixture
def filled(ledger: Ledger, make_run: MakeRun, url: str) -> Iterator[Results]:
    """Two arms tuned over two rates, rope better at the second, and one confirm run each."""
    runs = [
        make_run(
            seed,
            arm=position,
            phase=phase,
            config=config_of(position, rate),
            config_hash=f"{position}-{rate}",
            identity=f"{position}-{rate}-{phase}-{seed}",
        )
        for position in ("rope", "alibi")
        for phase, rate, seed in (("tune", 0.1, 0), ("tune", 0.2, 1), ("confirm", 0.2, 2))
    ]
    ids = ledger.plan(runs)
    for nll in (3.0, 1.0, 2.0, float("nan"), 5.0, 4.0):
        claim = ledger.claim("w", ids)
        assert claim is not None
        curve = [{"step": step, "metric": "loss", "value": nll / step} for step in (1, 2)]
        ledger.finish(claim, "done", scores=scores_of(nll), curves=curve, wall_seconds=1.0)
    ledger.choose(make_choice([(0.1, 36.0, [1]), (0.2, 12.0, [2])], 1, edges=HIGHEST))
    ledger.choose(make_choice([(0.1, None, [4]), (0.2, 60.0, [5])], 1, arm="alibi"))
    results = Results(url)
    yield results
    results.close()


def test_runs_are_confirm_runs_unless_asked(filled: Results) -> None:
    assert [run.id for run in filled.runs()] == [3, 6]
    assert [run.id for run in filled.runs(phase="tune")] == [1, 2, 4, 5]
    assert len(filled.runs(phase="all")) == len(filled.runs(phase=None)) == 6
    assert {score.phase for score in filled.scores()} == {"confirm"}
    assert {point.run_id for point in filled.curves()} == {3, 6}


def test_keywords_choose(filled: Results) -> None:
    assert [run.id for run in filled.runs(position="rope")] == [3]
    assert [run.id for run in filled.runs(arm=["rope", "alibi"], seed=2)] == [3, 6]
    assert [run.id for run in filled.runs(study="reach", task="copy", status="done")] == [3, 6]
    assert len(filled.runs(status="failed")) == 0
    assert len(filled.runs(arm=[])) == 0
    assert len(filled.runs(phase=("tune", "confirm"))) == 6
    assert len(filled.scores(metric="nll", split="test", length=8)) == 2
    assert len(filled.scores(bin=None)) == 16
    assert [point.value for point in filled.curves(metric="loss", arm="rope")] == [2.0, 1.0]
    assert [point.step for point in filled.curves(where="step > 1 and value < 3")] == [2, 2]


@pytest.mark.parametrize(
    "match",
    [
        {"studdy": "reach"},
        {"phase": "confrim"},
        {"status": "finished"},
        {"seed": "1"},
        {"arm": 1},
        {"seed": 0.5},
    ],
)
def test_bad_keywords_are_refused(
    messages: Messages, filled: Results, match: dict[str, Any]
) -> None:
    for query in (filled.runs, filled.scores, filled.curves):
        with messages.raises(StoreError):
            query(**match)


def test_a_run_has_the_fields_that_are_promised(filled: Results) -> None:
    assert [each.name for each in fields(Run)] == RUN_FIELDS
    run = filled.runs()[0]
    assert run.created_at.utcoffset() is not None
    with pytest.raises(FrozenInstanceError):
        run.seed = 3  # type: ignore[misc]
    assert list(filled.runs().frame().columns) == RUN_FIELDS


def test_the_score_table_ends_with_what_varies(filled: Results) -> None:
    frame = filled.scores().frame()
    varying_options = ["encoder.position.name", "encoder.position.theta"]
    assert list(frame.columns) == SCORE_FRAME + varying_options
    tuned = filled.scores(phase="tune").frame()
    assert list(tuned.columns) == [*SCORE_FRAME, *varying_options, "training.learning_rate"]
    assert list(filled.scores(arm="rope").frame().columns) == SCORE_FRAME
    assert frame["encoder.position.name"].tolist() == 8 * ["rope"] + 8 * ["alibi"]
    assert filled.scores()[-1].options == {
        "encoder.position.name": "alibi",
        "encoder.position.theta": None,
    }


def test_a_table_has_the_same_types_when_empty(filled: Results) -> None:
    for query in (filled.runs, filled.scores, filled.curves):
        full, empty = query(study="reach").frame(), query(study="none").frame()
        assert len(empty) == 0
        numbers = [name for name in empty.columns if pd.api.types.is_numeric_dtype(full[name])]
        assert numbers
        for name in set(numbers) & set(empty.columns):
            assert empty[name].dtype == full[name].dtype


def test_curves_have_four_columns(filled: Results) -> None:
    assert list(filled.curves().frame().columns) == ["run_id", "step", "metric", "value"]


def test_records_are_plain_and_survive_pickling(filled: Results) -> None:
    scores = filled.scores()
    copy = pickle.loads(pickle.dumps(scores))
    assert copy == scores
    assert copy.frame().equals(scores.frame())
    assert isinstance(scores, tuple)


def test_best_tells_what_was_chosen(messages: Messages, filled: Results) -> None:
    best = filled.best()
    assert [(each.arm, each.run_id, each.nll, each.tried, each.seeds) for each in best] == [
        ("alibi", 5, 60.0, 2, 1),
        ("rope", 2, 12.0, 2, 1),
    ]
    assert [each.at_edge for each in best] == [None, "highest training.learning_rate"]
    assert best[1].options == {
        "encoder.position.name": "rope",
        "encoder.position.theta": 10_000,
        "training.learning_rate": 0.2,
    }
    assert best[1].config == config_of("rope", 0.2)
    assert filled.best(arm="rope")[0].options == {"training.learning_rate": 0.2}
    assert list(best.frame()["training.learning_rate"]) == [0.2, 0.2]
    assert [each.arm for each in filled.best(position="rope")] == ["rope"]
    with messages.raises(StoreError):
        filled.best(phase="confirm")


def test_best_decides_nothing(ledger: Ledger, filled: Results) -> None:
    """Another rule may have taken a setting that was not the lowest."""
    ledger.choose(make_choice([(0.1, 36.0, [1]), (0.2, 12.0, [2])], 0, search="middle"))
    assert [(each.arm, each.run_id, each.nll) for each in filled.best(arm="rope")] == [
        ("rope", 1, 36.0)
    ]
    assert [each.run_id for each in filled.best(arm="rope", current=False)] == [2, 1]


def test_a_choice_is_kept_once(ledger: Ledger, filled: Results) -> None:
    again = make_choice([(0.1, 36.0, [1]), (0.2, 12.0, [2])], 0)
    kept = ledger.choose(again)
    assert (kept.setting, kept.edges) == ({"training.learning_rate": 0.2}, HIGHEST)
    assert kept.created_at is not None
    assert len(filled.best(current=False)) == 2


def test_what_tuning_refused_to_choose_has_no_best(
    ledger: Ledger, make_run: MakeRun, url: str
) -> None:
    ids = ledger.plan([make_run(phase="tune", config=config_of("rope", 0.1))])
    claim = ledger.claim("w", ids)
    assert claim is not None
    ledger.finish(claim, "diverged")
    ledger.choose(make_choice([(0.1, None, ids)], None))
    (best,) = Results(url).best()
    assert (best.run_id, best.nll, best.tried, best.config) == (None, None, 1, None)
    assert ledger.reset(ids, ("diverged",)) == 1
    assert Results(url).best() == ()


def test_best_leaves_out_superseded_runs(ledger: Ledger, make_run: MakeRun, url: str) -> None:
    runs = [
        make_run(phase="tune", config=config_of("rope", rate), config_hash=name, identity=name)
        for name, rate in (("slow", 0.1), ("fast", 0.2))
    ]
    slow, fast = ledger.plan(runs)
    ledger.choose(make_choice([(0.1, 2.0, [slow]), (0.2, 1.0, [fast])], 1))
    ledger.supersede([fast])
    assert Results(url).best() == ()
    ledger.choose(make_choice([(0.2, 1.0, [fast])], 0))
    assert [one.tried for one in Results(url).best()] == [1]
    assert [one.tried for one in Results(url).best(current=False)] == [2, 1]


def test_plans_are_kept_once_with_their_last_call(ledger: Ledger, url: str) -> None:
    first, second = {"arms": ["rope"], "seeds": 5}, {"arms": ["rope", "alibi"], "seeds": 5}
    number = ledger.keep_plan("reach", first)
    other = ledger.keep_plan("reach", second)
    assert ledger.keep_plan("reach", {"seeds": 5, "arms": ("rope",)}) == number != other
    plans = Results(url).plans("reach")
    assert [(one.id, one.plan) for one in plans] == [(other, second), (number, first)]
    assert plans[1].created_at < plans[0].created_at <= plans[0].called_at < plans[1].called_at
    assert Results(url).plans("none") == ()


def test_names_and_counts(messages: Messages, filled: Results, ledger: Ledger) -> None:
    assert filled.names("arm") == {"rope", "alibi"}
    with messages.raises(StoreError):
        filled.names("arms")
    assert filled.counts() == {"reach": {"done": 6}}
    assert filled.studies() == {"reach": None}
    number = ledger.environment({"python": "3.11"})
    assert filled.environment(number) == {"python": "3.11"}
    with messages.raises(StoreError):
        filled.environment(99)


def test_an_option_varies_by_value_and_type() -> None:
    configs = {1: {"a": 1, "b": {}, "c": [1]}, 2: {"a": 1.0, "b": {}, "c": [1]}}
    assert varying(configs) == {1: {"a": 1}, 2: {"a": 1.0}}
    assert flatten({"a": {"b": {"c": 1}, "d": {}}}) == {"a.b.c": 1, "a.d": {}}


def test_runs_of_one_config_from_two_sources_are_told_apart(
    ledger: Ledger, make_run: MakeRun, url: str
) -> None:
    ids = ledger.plan([make_run(0, code_hash="old"), make_run(1, code_hash="new")])
    while claim := ledger.claim("w", ids):
        ledger.finish(claim, "done", scores=scores_of(1.0))

    frame = Results(url).scores(metric="accuracy").frame()

    assert list(frame.columns) == [*SCORE_FRAME, "code_hash"]
    assert set(frame["code_hash"]) == {"old", "new"}
