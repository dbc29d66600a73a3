"""Optuna's side: trials follow the runs."""

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest

from store.ledger import Ledger
from store.records import Claim, PlannedRun
from studies.analysis.summaries import Point
from studies.execution.trials import RATE, Trials, study_name

RUNNING = optuna.trial.TrialState.RUNNING
Tried = Sequence[Mapping[str, Any]]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'sandbox.db'}"


def planned(
    rate: float, seed: int = 1000, steps: int = 5, tried: Tried = (), which: int = 0
) -> PlannedRun:
    config: dict[str, Any] = {"task": "t", "training": {"learning_rate": rate, "steps": steps}}
    setting = tried[which] if tried else {}
    config["training"].update({key.partition(".")[2]: value for key, value in setting.items()})
    return PlannedRun(
        study="s",
        task="t",
        arm="a",
        phase="tune",
        seed=seed,
        config=config,
        config_hash=f"{rate} {steps} {setting}",
        code_hash=None,
        identity=f"{rate} {seed} {steps} {setting} {tried}",
        steps=steps,
        provenance={"setting": setting, "tried": list(tried)} if tried else {},
    )


def claimed(ledger: Ledger, worker: str, ids: list[int]) -> Claim:
    claim = ledger.claim(worker, ids)
    assert claim is not None
    return claim


def states(url: str, name: str) -> list[tuple[str, float | None, dict]]:
    study = optuna.load_study(study_name=name, storage=url)
    return [(trial.state.name, trial.value, trial.params) for trial in study.trials]


def test_a_run_becomes_one_trial_with_its_setting_and_value(url: str) -> None:
    ledger, trials = Ledger.create(url), Trials(url)
    ids = ledger.plan([planned(0.01)])
    claim = claimed(ledger, "w", ids)

    name, number = trials.begin(claim.run, claim.attempt)
    trials.end(name, number, 1.5)

    assert states(url, name) == [("COMPLETE", 1.5, {"training.learning_rate": 0.01})]


def test_settings_of_one_arm_share_a_study_and_the_best_is_the_lowest(url: str) -> None:
    ledger, trials = Ledger.create(url), Trials(url)
    runs = ledger.runs(ledger.plan([planned(0.01), planned(0.001)]))

    for run, nll in zip(runs, (0.5, 0.3), strict=True):
        trials.end(*trials.begin(run, 1), nll)

    assert study_name(runs[0]) == study_name(runs[1])
    study = optuna.load_study(study_name=study_name(runs[0]), storage=url)
    assert study.best_params == {"training.learning_rate": 0.001}


CLIP, WARMUP, FORM = "training.clip_norm", "training.warmup_steps", "training.schedule"
LISTS: dict[str, list[tuple[str, list[Any]]]] = {
    "a number or nothing": [(CLIP, [None, 1.0, 2])],
    "a number or a word": [(CLIP, [1, "none"])],
    "counts and then shares of the same thing": [(WARMUP, [0, 100]), (WARMUP, [0, 0.05])],
    "shares and then counts of the same thing": [(WARMUP, [0.0, 0.05]), (WARMUP, [0, 100])],
    "numbers and then words": [(CLIP, [1.0, 2.0]), (CLIP, [1.0, None])],
    "a word more": [(FORM, ["linear", "cosine"]), (FORM, ["linear", "cosine", "constant"])],
    "a wider range": [(WARMUP, [1, 4]), (WARMUP, [1, 16])],
    "numbers beyond every usual one": [(WARMUP, [1, 2**40]), (CLIP, [0.5, 1e12])],
    "rates that diverge": [(RATE, [1e-12, 1e6])],
    "yes or no": [("training.nesterov", [True, False, 1])],
}


@pytest.mark.parametrize("lists", LISTS.values(), ids=LISTS)
def test_whatever_is_tried_in_call_after_call_is_a_trial_of_its_own(
    url: str, lists: list[tuple[str, list[Any]]]
) -> None:
    """Optuna refuses a key of another kind, or with other choices, within one of its studies."""
    ledger, trials = Ledger.create(url), Trials(url)
    for key, values in lists:
        tried = [{key: value} for value in values]
        each = [planned(0.01, tried=tried, which=number) for number in range(len(values))]
        runs = ledger.runs(ledger.plan(each))
        ended = [trials.begin(run, 1) for run in runs]
        for nll, (name, number) in enumerate(ended):
            trials.end(name, number, float(nll))

        assert len({name for name, _ in ended}) == 1
        found = states(url, ended[0][0])
        numbers = [one for _, one in ended]
        assert [found[one][:2] for one in numbers] == [
            ("COMPLETE", float(nll)) for nll in range(len(values))
        ]
        kept = [found[one][2][key] for one in numbers]
        plain = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
        assert kept == (values if plain else [json.dumps(one) for one in values])


def test_the_open_trial_of_a_run_is_closed_in_the_study_that_it_was_begun_in(url: str) -> None:
    """An older version may have named that study otherwise."""
    ledger, trials = Ledger.create(url), Trials(url)
    ids = ledger.plan([planned(0.01)])
    lost = claimed(ledger, "dead", ids)
    elsewhere = planned(0.01, steps=9)
    [other] = ledger.runs(ledger.plan([elsewhere]))
    name, _ = trials.begin(other, 1)
    study = optuna.load_study(study_name=name, storage=url)
    mark = {"run": lost.run.id, "attempt": lost.attempt, "seed": lost.run.seed}
    study.add_trial(optuna.trial.create_trial(state=RUNNING, user_attrs=mark))
    ledger.attach_trial(lost, name, 1)
    ledger.recover(ids, lambda worker: False)

    trials.reconcile(ledger.runs(ids), {})

    assert states(url, name)[1][0] == "FAIL"


def test_points_of_a_search_may_be_parts_with_options_nothing_words_and_numbers(url: str) -> None:
    Ledger.create(url)
    alibi = {"name": "alibi", "sides": "symmetric"}
    space: dict[str, list[Any]] = {"position": ["rope", alibi], "clip": [None, 1.0], "n": [1, 2]}
    points = [
        Point("a", {"position": alibi, "clip": None, "n": 1}, (0.5, 1.0)),
        Point("b", {"position": "rope", "clip": 1.0, "n": 2}, (0.2, 2.0)),
        Point("outside", {"position": "rope", "clip": 1.0, "n": 3}, (0.1, 3.0)),
    ]
    trials = Trials(url)
    for found in (points[:1], points):
        trials.keep_points("s", space, ["minimize", "maximize"], found)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = optuna.load_study(study_name="s", storage=url).trials
    assert [one.params for one in kept] == [dict(one.setting) for one in points[:2]]
    assert [one.values for one in kept] == [[0.5, 1.0], [0.2, 2.0]]


def test_another_setting_of_the_rest_is_another_study(url: str) -> None:
    ledger = Ledger.create(url)
    short, long = ledger.runs(ledger.plan([planned(0.01), planned(0.01, steps=9)]))

    assert study_name(short) != study_name(long)


def test_a_run_without_a_value_is_a_failed_trial(url: str) -> None:
    ledger, trials = Ledger.create(url), Trials(url)
    [run] = ledger.runs(ledger.plan([planned(0.01)]))

    name, number = trials.begin(run, 1)
    trials.end(name, number, None)

    assert [state for state, _, _ in states(url, name)] == ["FAIL"]


def test_a_point_that_failed_and_was_done_again_is_complete_once(url: str) -> None:
    ledger, trials = Ledger.create(url), Trials(url)
    ids = ledger.plan([planned(0.01)])
    for nll in (None, 0.5):
        ledger.reset(ids, ("failed",))
        claim = claimed(ledger, "w", ids)
        ledger.attach_trial(claim, *(trial := trials.begin(claim.run, claim.attempt)))
        ledger.finish(claim, "failed" if nll is None else "done", reason="made up")
        trials.end(*trial, nll)
    for _ in range(2):
        trials.reconcile(ledger.runs(ids), {ids[0]: 0.5})

    name = study_name(claim.run)
    assert [(state, value) for state, value, _ in states(url, name)] == [
        ("FAIL", None),
        ("COMPLETE", 0.5),
    ]


def test_a_trial_that_is_closed_stays_as_it_is(url: str) -> None:
    ledger, trials = Ledger.create(url), Trials(url)
    [run] = ledger.runs(ledger.plan([planned(0.01)]))
    name, number = trials.begin(run, 1)
    trials.end(name, number, 0.25)

    trials.end(name, number, None)

    assert [(state, value) for state, value, _ in states(url, name)] == [("COMPLETE", 0.25)]


def test_reconciling_closes_the_trial_of_a_lost_worker_and_keeps_the_live_one(url: str) -> None:
    ledger, trials = Ledger.create(url), Trials(url)
    ids = ledger.plan([planned(0.01), planned(0.02)])
    lost = claimed(ledger, "dead", ids)
    ledger.attach_trial(lost, *trials.begin(lost.run, lost.attempt))
    live = claimed(ledger, "live", ids)
    ledger.attach_trial(live, *trials.begin(live.run, live.attempt))
    ledger.recover(ids, lambda worker: worker == "live")

    trials.reconcile(ledger.runs(ids), {})

    assert [state for state, _, _ in states(url, study_name(live.run))] == ["FAIL", "RUNNING"]


def test_reconciling_completes_the_trial_of_a_run_that_was_stored_first(url: str) -> None:
    """A kill between the two writes leaves the result stored and the trial open."""
    ledger, trials = Ledger.create(url), Trials(url)
    ids = ledger.plan([planned(0.01)])
    claim = claimed(ledger, "w", ids)
    ledger.attach_trial(claim, *trials.begin(claim.run, claim.attempt))
    ledger.finish(claim, "done")

    trials.reconcile(ledger.runs(ids), {ids[0]: 0.75})

    name = study_name(claim.run)
    assert [(state, value) for state, value, _ in states(url, name)] == [("COMPLETE", 0.75)]


def test_reconciling_closes_a_trial_that_was_never_attached(url: str) -> None:
    ledger, trials = Ledger.create(url), Trials(url)
    ids = ledger.plan([planned(0.01)])
    first = claimed(ledger, "dead", ids)
    trials.begin(first.run, first.attempt)
    ledger.recover(ids, lambda worker: False)
    second = claimed(ledger, "live", ids)
    ledger.attach_trial(second, *trials.begin(second.run, second.attempt))

    trials.reconcile(ledger.runs(ids), {})

    assert [state for state, _, _ in states(url, study_name(first.run))] == ["FAIL", "RUNNING"]
