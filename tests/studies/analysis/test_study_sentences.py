"""Sentences about a whole study, on result sets with known answers."""

from dataclasses import replace

import pytest

from studies.analysis import Verdict
from studies.analysis.results import Reach
from studies.analysis.sentences import claims, counts, listed, reaches
from studies.experiment.hypothesis import Hypothesis
from studies.experiment.study import Line
from tests.studies.made_up import further, task

WINNER = further("rope", (1.0, 0.99, 0.95), (1.0, 0.97, 0.93))
LOSER = further("learned", (1.0, 0.4, 0.1), (1.0, 0.5, 0.2))
UNTAUGHT = further("none", (0.1, 0.0, 0.0), (0.2, 0.0, 0.0))
LOST = further("wild", "failed", "failed")
BIMODAL = further("moody", (1.0, 1.0, 1.0), (1.0, 0.0, 0.0))


def test_a_clear_winner_is_named_with_how_far_it_reaches() -> None:
    said = reaches([task(WINNER, LOSER)], [])
    assert said == (
        "on shift, rope stays at 0.8 skill or above up to length 64, the other arm that learned "
        "falls earlier."
    )


def test_a_tie_names_all_that_reach_as_far() -> None:
    twin = further("alibi", (1.0, 0.98, 0.9), (1.0, 0.98, 0.9))
    said = reaches([task(WINNER, twin)], [])
    assert said == "on shift, rope and alibi stay at 0.8 skill or above up to length 64."


def test_an_arm_that_did_not_learn_is_never_said_to_have_not_extrapolated() -> None:
    said = reaches([task(WINNER, UNTAUGHT)], [])
    assert said.endswith("; “none” did not learn the trained lengths.")


def test_an_arm_that_learned_in_some_seeds_is_neither_idle_nor_a_learner() -> None:
    torn = further("torn", (1.0, 0.4, 0.1), (0.1, 0.0, 0.0), (0.2, 0.0, 0.0))
    other = replace(torn, name="frayed")
    assert reaches([task(WINNER, UNTAUGHT, torn)], []) == (
        "on shift, rope stays at 0.8 skill or above up to length 64; “none” did not learn the "
        "trained lengths; torn learned in 1 of 3 seeds only."
    )
    assert reaches([task(WINNER, torn, other)], []).endswith(
        "up to length 64; torn and frayed learned in a part of their seeds only."
    )
    assert reaches([task(torn, UNTAUGHT)], []) == (
        "on shift, no arm reaches skill 0.8 at length 16; torn learned in 1 of 3 seeds only."
    )


def test_an_arm_without_a_result_is_not_said_to_have_learned_nothing() -> None:
    said = reaches([task(WINNER, LOST)], [])
    assert said == (
        "on shift, rope stays at 0.8 skill or above up to length 64; wild has no result; "
        "2 of 4 seeds failed."
    )


def test_a_seed_that_diverged_counts_as_one_that_learned_nothing() -> None:
    # .97 in four of five seeds: .776 over all of them, as the verdict has it.
    shaky = further("shaky", *[(1.0, 0.97, 0.97)] * 4, "diverged")
    here = task(shaky, LOSER)

    assert shaky.reach(0.8).skill == pytest.approx(0.776)
    assert reaches([here], []).endswith(
        "; 1 of 7 seeds diverged and counts as one that learned nothing."
    )


def test_an_arm_that_cannot_be_asked_further_does_not_fall() -> None:
    short = further("learned", (1.0,), (1.0,))
    longer, lower = further("rope", (1.0, 1.0, 1.0)), further("alibi", (1.0, 0.3, 0.1))

    assert reaches([task(longer, short)], []) == (
        "on shift, rope stays at 0.8 skill or above up to length 64; learned cannot be asked so "
        "far."
    )
    assert reaches([task(longer, short, lower)], []) == (
        "on shift, rope stays at 0.8 skill or above up to length 64, another arm that learned "
        "falls earlier; learned cannot be asked so far."
    )


def test_where_nobody_learned_nobody_wins() -> None:
    assert reaches([task(UNTAUGHT)], []) == ("on shift, no arm reaches skill 0.8 at length 16.")


def test_where_nothing_longer_is_tested_nothing_is_said_of_it() -> None:
    short = replace(task(WINNER, LOSER, UNTAUGHT), lengths=[16])
    assert reaches([short], []) == (
        "on shift, rope and learned reach skill 0.8 at length 16, the longest tested; “none” did "
        "not learn the trained lengths."
    )


def test_many_arms_are_counted_where_few_are_named() -> None:
    many = [replace(WINNER, name=f"rope {number}") for number in range(7)]
    short = replace(task(*many, UNTAUGHT), lengths=[16])
    assert reaches([short], []) == (
        "on shift, 7 of 8 arms reach skill 0.8 at length 16, the longest tested; “none” did not "
        "learn the trained lengths."
    )


def test_panels_of_one_length_are_counted() -> None:
    first, second = (
        replace(task(WINNER, UNTAUGHT), lengths=[16], label=label) for label in ("one", "two")
    )
    assert reaches([first, second], []) == (
        "skill 0.8 at the trained lengths is reached by 1 of 2 arms on one and 1 of 2 arms on two."
    )


def test_a_study_without_claims_is_told_from_one_whose_claims_came_late() -> None:
    claim = Hypothesis("far", "rope reaches further", "rope", "learned", "shift", (32,))
    late = Verdict(claim, "supported", exploratory=True)

    assert claims([]) == "This study makes no claim, so none is tested."
    # They may have been fixed, and this call have fewer seeds than that plan.
    assert claims([late]) == (
        "No verdict follows a plan that was fixed before the confirming runs: every one is "
        "exploratory."
    )


def test_a_call_for_a_part_of_the_claims_says_how_many_were_fixed() -> None:
    claim = Hypothesis("far", "rope reaches further", "rope", "learned", "shift", (32,))
    found = Verdict(claim, "supported", family=3)

    assert claims([found]) == (
        "Of 3 hypotheses fixed before the confirming runs, 1 asked here: 1 supported (far)."
    )
    assert claims([replace(found, family=1)]) == (
        "Of 1 hypothesis fixed before the confirming runs: 1 supported (far)."
    )


def test_outcomes_in_words_are_counted_and_the_few_named() -> None:
    lines = [Line(f"check {number}", "passed", "") for number in range(7)]
    unlike = task(WINNER, scored=False, label="acceptance")
    assert reaches([unlike], lines) == "7 of 7 passed."
    lines += [Line("heads", "failed", "5"), Line("a mask", "failed", "6")]
    assert reaches([unlike], lines) == "7 of 9 passed, 2 failed (heads; a mask)."
    assert reaches([unlike], []) == "measured were acceptance."


def test_where_all_seeds_are_lost_there_is_no_result_and_they_are_counted() -> None:
    assert reaches([task(LOST)], []) == ("on shift, no arm has a result; 2 of 2 seeds failed.")
    assert reaches([task(LOST, UNTAUGHT)], []) == (
        "on shift, no arm reaches skill 0.8 at length 16; wild has no result; 2 of 4 seeds failed."
    )
    assert counts([task(LOST, WINNER)]) == ("4 confirming runs; 2 of them ended without numbers")


def test_a_bimodal_arm_falls_by_its_mean_and_shows_its_share() -> None:
    assert BIMODAL.reach(0.8) == Reach(True, 16, 32, 0.5)
    share = BIMODAL.solved(32, 0.8)
    assert share is not None
    assert share.mean == 0.5


def test_names_are_read_aloud() -> None:
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == [
        "a",
        "a and b",
        "a, b and c",
    ]


def test_runs_to_come_are_no_runs_that_ended_without_numbers() -> None:
    told = counts([task(further("rope", (1.0, 0.99, 0.95), "planned"))])
    assert told == "1 confirming run; 1 still to be done"


def test_before_the_first_confirming_run_nothing_is_said_to_fall_short() -> None:
    told = reaches([task(further("rope"), further("learned"))], [])

    assert told == "on shift, no confirming run is over yet."
