"""From stored runs to verdicts."""

from dataclasses import replace
from pathlib import Path

from studies.analysis import Frozen
from studies.analysis.verdicts import verdicts
from studies.experiment.draft import Draft
from tests.studies.made_up import CLAIM, FAR, NEAR, MadeUp, draft


def test_primary_verdicts_come_from_the_frozen_plan_and_others_are_exploratory(
    tmp_path: Path,
) -> None:
    later = {**CLAIM, "name": "later", "direction": "less"}
    made = MadeUp(tmp_path, draft(5, explored=[later]), {"rope": FAR, "learned": NEAR})

    found = made.verdicts

    assert [(one.hypothesis.name, one.status, one.exploratory) for one in found] == [
        ("further", "supported", False), ("later", "refuted", True)
    ]  # fmt: skip
    assert {one.family for one in found} == {1}


def test_what_a_reader_needs_beside_a_verdict_is_noted_with_the_means_of_both_arms(
    tmp_path: Path,
) -> None:
    made = draft(5)
    asking = Draft(replace(made.study, beside=("exact",)), made.settings)

    [verdict] = MadeUp(tmp_path, asking, {"rope": FAR, "learned": NEAR}).verdicts

    # The means of FAR and NEAR at length 32.
    assert verdict.notes[-1] == "Exact: rope .90, learned .30."


def test_beside_a_verdict_stand_the_seeds_of_the_verdict(tmp_path: Path) -> None:
    made = draft(5)
    asking = Draft(replace(made.study, beside=("exact", "nll")), made.settings)
    told = MadeUp(tmp_path, asking, {"rope": [*FAR[:4], "diverged"], "learned": NEAR})
    few = Frozen(tuple(asking.settings.study.claims()), tuple(range(4)))

    primary, later = verdicts(told.results, few)

    # Of the first four of FAR and NEAR, and of all five, one of which scores nothing: (.90 + .92 +
    # .88 + .91) / 5. nll was not measured.
    assert primary.notes[-1] == "Exact: rope .90, learned .30."
    assert later.exploratory
    assert later.notes[-1] == "Exact: rope .72, learned .30."


def test_a_mean_of_a_part_of_the_seeds_says_so(tmp_path: Path) -> None:
    made = draft(5)
    asking = Draft(replace(made.study, beside=("exact",)), made.settings)

    told = MadeUp(tmp_path, asking, {"rope": [*FAR[:4], "failed"], "learned": NEAR}).verdicts

    assert told[0].notes[-1] == "Exact: rope .90 in 4 of 5 seeds, learned .30."
