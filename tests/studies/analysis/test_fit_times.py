"""Steps to fit in words."""

import pytest

from studies.analysis.phrases import fit_title
from studies.analysis.results import Arm
from studies.analysis.sentences import fit_times
from tests.studies.made_up import score, seed


def timed(*times: tuple[float, int], failed: int = 0) -> Arm:
    found = [
        seed({}, score("steps_to_fit", value, split="train", correct=met)) for value, met in times
    ]
    return Arm(dict(enumerate([*found, *[seed("failed")] * failed])))


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (timed((60.0, 1), (40.0, 1)), "2 of 2 seeds, after 40 to 60 steps"),
        (timed((40.0, 1), (1800.0, 0)), "1 of 2 seeds, after 40 steps; 1 not within 1,800 steps"),
        (timed((18.0, 0), (18.0, 0)), "0 of 2 seeds; 2 not within 18 steps"),
        (timed((40.0, 1), failed=1), "1 of 2 seeds, after 40 steps"),
    ],
    ids=["all", "one slow", "none", "one failed"],
)
def test_seeds_that_met_the_criterion_are_told_from_those_that_did_not(
    made: Arm, told: str
) -> None:
    assert fit_times(made) == told


def test_the_criterion_is_named() -> None:
    assert fit_title("exact", 0.9) == "steps until exact 0.9 at trained lengths"
