"""Optuna's side: trials follow the runs."""

from pathlib import Path

import optuna
import pytest

from store.ledger import Ledger
from store.records import Claim, PlannedRun
from studies.conducting.search import Trials, study_name


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'sandbox.db'}"


def planned(rate: float, seed: int = 1000, steps: int = 5) -> PlannedRun:
    config = {"task": "t", "training": {"learning_rate": rate, "steps": steps}}
    return PlannedRun(
        study="s",
        task="t",
        arm="a",
        phase="tune",
        seed=seed,
        config=config,
        config_hash=f"{rate} {steps}",
        code_hash=None,
        identity=f"{rate} {seed} {steps}",
        steps=steps,
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
