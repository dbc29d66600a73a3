"""Counts and shares as sentences tell them."""

import pytest

from studies.analysis.phrases import out_of, runs_done, seldom_learned, short_of


@pytest.mark.parametrize(
    ("count", "total", "told"),
    [(2, 3, "2 of 3 seeds"), (0, 1, "0 of 1 seed"), (1, 1, "1 of 1 seed"), (1, 2, "1 of 2 seeds")],
)
def test_a_noun_is_singular_where_there_is_one(count: int, total: int, told: str) -> None:
    assert out_of(count, total, "seed") == told


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.724, "0.72"), (0.7996, "0.7996"), (0.797, "0.797"), (-0.001, "0.00"), (-0.03, "-0.03")],
)
def test_what_falls_short_is_never_shown_as_if_it_did_not(value: float, told: str) -> None:
    assert short_of(value, 0.8) == told


def test_seeds_that_learned_and_runs_that_are_done_are_told_once_for_terminal_and_report() -> None:
    assert [seldom_learned(0, 3), seldom_learned(1, 3)] == [
        "did not learn",
        "learned in 1 of 3 seeds only",
    ]
    assert [runs_done(1, 1), runs_done(0, 2)] == ["1 of 1 run is done", "0 of 2 runs are done"]
