"""From stored runs to what statistics take: no seed is lost, no score is misplaced."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from studies.analysis.results import ArmResult, accuracy_floors, metric_of, outcome_of
from studies.analysis.verdicts import verdicts
from studies.experiment.plan import Plan
from studies.experiment.tune import Chosen
from studies.statistics import Frozen
from studies.training.settings import task_of
from tests.studies.made_up import CLAIM, FAR, NEAR, MadeUp, plan


def score(split: str, metric: str, length: int, value: float | None, **other: Any) -> Any:
    known = {"bin": None, "correct": None, **other}
    return SimpleNamespace(split=split, metric=metric, length=length, value=value, **known)


def outcome(*scores: Any, status: str = "done", reason: str = "") -> Any:
    made = plan(1)
    runs: list[Any] = [SimpleNamespace(id=1, seed=0, status=status)]
    chosen = Chosen(None if reason else {}, reason)
    return outcome_of(made, ArmResult(made.cells()[0], runs, chosen, {}, {1: list(scores)}))


def test_the_fit_is_the_skill_at_the_longest_trained_length() -> None:
    found = outcome(score("test", "skill", 16, 0.9), score("test", "skill", 32, 0.2))

    assert found.longest_trained == 16
    assert found.seeds[0].fit == 0.9


def test_a_test_score_wins_over_one_of_validation() -> None:
    scores = [score("test", "skill", 16, 0.9), score("validation", "skill", 16, 0.7)]

    assert outcome(*scores).seeds[0].fit == outcome(*scores[::-1]).seeds[0].fit == 0.9
    assert outcome(scores[1]).seeds[0].fit == 0.7


def test_bins_are_metrics_of_their_own() -> None:
    found = outcome(score("test", "skill", 32, 0.5), score("test", "skill", 32, 0.9, bin=2))

    assert found.seeds[0].values == {("skill", 32): 0.5, ("skill[2]", 32): 0.9}
    assert metric_of(score("test", "skill", 32, 0.9, bin=2)) == "skill[2]"


def test_a_time_that_was_not_reached_is_censored() -> None:
    met, not_met = (
        outcome(score("train", "steps_to_fit", 16, 30.0, correct=correct)).seeds[0]
        for correct in (1, 0)
    )

    assert met.censored == frozenset()
    assert not_met.censored == {("steps_to_fit", 16)}
    assert not_met.values == {("steps_to_fit", 16): 30.0}


def test_accuracy_has_the_floor_of_its_task() -> None:
    made = plan(1)
    task = task_of(made.config(made.cells()[0]).task)

    assert accuracy_floors(made.config(made.cells()[0])) == {
        ("accuracy", length): task.floors(length).highest for length in (16, 32)
    }


def test_an_arm_without_a_setting_says_why() -> None:
    assert outcome(reason="training diverged at every setting").reason == (
        "training diverged at every setting"
    )


@pytest.mark.parametrize("status", ["failed", "diverged", "not_applicable"])
def test_a_seed_that_ended_badly_keeps_its_status(status: str) -> None:
    assert outcome(status=status).seeds[0].status == status


def test_primary_verdicts_come_from_the_frozen_plan_and_others_are_exploratory(
    tmp_path: Path,
) -> None:
    later = {**CLAIM, "name": "later", "direction": "less"}
    made = MadeUp(tmp_path, plan(5, explored=[later]), {"rope": FAR, "learned": NEAR})

    found = made.verdicts

    assert [(one.hypothesis.name, one.status, one.exploratory) for one in found] == [
        ("further", "supported", False), ("later", "refuted", True)
    ]  # fmt: skip
    assert {one.family for one in found} == {1}


def test_what_a_reader_needs_beside_a_verdict_is_noted_with_the_means_of_both_arms(
    tmp_path: Path,
) -> None:
    made = plan(5)
    asking = Plan(replace(made.study, beside=("exact",)), made.settings)

    [verdict] = MadeUp(tmp_path, asking, {"rope": FAR, "learned": NEAR}).verdicts

    # The means of FAR and NEAR at length 32.
    assert verdict.notes[-1] == "Exact: rope .90, learned .30."


def test_beside_a_verdict_stand_the_seeds_of_the_verdict(tmp_path: Path) -> None:
    made = plan(5)
    asking = Plan(replace(made.study, beside=("exact", "nll")), made.settings)
    told = MadeUp(tmp_path, asking, {"rope": [*FAR[:4], "diverged"], "learned": NEAR})
    few = Frozen(tuple(asking.settings.study.claims()), tuple(range(4)))

    primary, later = verdicts(asking, told.results, few)

    # Of the first four of FAR and NEAR, and of all five, one of which scores nothing: (.90 + .92 +
    # .88 + .91) / 5. nll was not measured.
    assert primary.notes[-1] == "Exact: rope .90, learned .30."
    assert later.exploratory
    assert later.notes[-1] == "Exact: rope .72, learned .30."


def test_a_mean_of_a_part_of_the_seeds_says_so(tmp_path: Path) -> None:
    made = plan(5)
    asking = Plan(replace(made.study, beside=("exact",)), made.settings)

    told = MadeUp(tmp_path, asking, {"rope": [*FAR[:4], "failed"], "learned": NEAR}).verdicts

    assert told[0].notes[-1] == "Exact: rope .90 in 4 of 5 seeds, learned .30."
