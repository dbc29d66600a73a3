"""Steps to fit in words."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from studies.analysis.results import ArmResult
from studies.analysis.sentences import fit_times, fit_title
from studies.experiment.plan import Cell
from studies.training.settings import Until


def result(*times: tuple[float, int], failed: int = 0) -> ArmResult:
    scores = {
        number: [SimpleNamespace(metric="steps_to_fit", value=value, correct=met)]
        for number, (value, met) in enumerate(times)
    }
    runs: list[Any] = [None] * (len(times) + failed)
    return ArmResult(Cell(0, "shift", "rope"), runs, None, {}, cast("Any", scores))


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (result((60, 1), (40, 1)), "2 of 2 seeds, after 40 to 60 steps"),
        (result((40, 1), (1800, 0)), "1 of 2 seeds, after 40 steps; 1 not within 1,800 steps"),
        (result((18, 0), (18, 0)), "0 of 2 seeds; 2 not within 18 steps"),
        (result((40, 1), failed=1), "1 of 2 seeds, after 40 steps"),
    ],
    ids=["all", "one slow", "none", "one failed"],
)
def test_seeds_that_met_the_criterion_are_told_from_those_that_did_not(
    made: ArmResult, told: str
) -> None:
    assert fit_times(made) == told


def test_the_criterion_is_named() -> None:
    title = fit_title(Until(metric="exact", value=0.9))

    assert title == "steps until exact 0.9 at trained lengths"
