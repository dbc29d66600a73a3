"""Tuning: what is chosen, what fits as well, and what is at an edge."""

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from studies.experiment.plan import Cell
from studies.experiment.tune import Tried, choose, edges, in_words

NUMBERS = count(1)
CELL = Cell(0, "task", "arm")
RATE, STEPS = "training.learning_rate", "training.warmup_steps"


def tried(setting: dict[str, Any], *nlls: float | None, status: str = "done") -> Tried:
    runs: list[Any] = [SimpleNamespace(id=next(NUMBERS), study="s", status=status) for _ in nlls]
    return Tried(setting, runs, {run.id: nll for run, nll in zip(runs, nlls, strict=True)})


def test_settings_within_the_tolerance_fit_as_well() -> None:
    found = choose(
        CELL, [tried({RATE: 0.1}, 0.50), tried({RATE: 0.2}, 0.505), tried({RATE: 0.3}, 0.52)], 0.01
    )

    assert (found.setting, found.near) == ({RATE: 0.1}, [{RATE: 0.2}])


def test_settings_within_one_standard_error_of_the_best_fit_as_well() -> None:
    """The standard error of 0.4 and 0.6 is 0.1 = (0.2 / sqrt 2) / sqrt 2."""
    found = choose(CELL, [tried({RATE: 0.1}, 0.4, 0.6), tried({RATE: 0.2}, 0.59, 0.61)], 0.0)
    assert found.near == [{RATE: 0.2}]

    found = choose(CELL, [tried({RATE: 0.1}, 0.4, 0.6), tried({RATE: 0.2}, 0.61, 0.61)], 0.0)
    assert found.near == []


def test_the_middle_of_near_tied_settings_can_be_taken_whichever_is_lowest() -> None:
    first = [tried({RATE: 0.1}, 0.505), tried({RATE: 0.2}, 0.502), tried({RATE: 0.3}, 0.500)]
    second = [tried({RATE: 0.1}, 0.500), tried({RATE: 0.2}, 0.502), tried({RATE: 0.3}, 0.505)]

    for known in (first, second):
        found = choose(CELL, known, 0.01, "middle")
        assert found.setting == {RATE: 0.2}
        assert found.near == [{RATE: 0.1}, {RATE: 0.3}]
        assert found.edges == {}


def test_only_near_tied_settings_can_be_taken_for_the_middle() -> None:
    known = [tried({RATE: 0.1}, 0.9), tried({RATE: 0.2}, 0.6), tried({RATE: 0.3}, 0.5)]

    found = choose(CELL, known, 0.01, "middle")

    assert (found.setting, found.edges) == ({RATE: 0.3}, {RATE: "highest"})


def test_of_two_as_near_to_the_middle_the_earlier_is_taken() -> None:
    known = [tried({RATE: rate}, nll) for rate, nll in ((1, 0.9), (2, 0.502), (3, 0.5), (4, 0.9))]

    assert choose(CELL, known, 0.01, "middle").setting == {RATE: 2}


def test_a_setting_that_diverged_on_one_seed_cannot_win() -> None:
    found = choose(CELL, [tried({RATE: 0.1}, 0.1, None), tried({RATE: 0.2}, 0.9, 0.9)], 0.01)

    assert found.setting == {RATE: 0.2}


@pytest.mark.parametrize(
    ("status", "nll", "reason"),
    [
        ("failed", None, "1 of 1 tuning runs failed"),
        ("diverged", None, "training diverged at every setting"),
    ],
)
def test_a_cell_without_a_setting_says_why(status: str, nll: None, reason: str) -> None:
    found = choose(CELL, [tried({RATE: 0.1}, nll, status=status)], 0.01)

    assert (found.setting, found.reason) == (None, reason)


def test_every_number_at_an_end_of_its_list_is_an_edge_and_text_is_not() -> None:
    grid = [
        tried({RATE: rate, STEPS: steps, "encoder.norm": norm}, 1.0)
        for rate in (0.1, 0.2, 0.3)
        for steps in (10, 20)
        for norm in ("layernorm", "rmsnorm")
    ]

    assert edges({RATE: 0.2, STEPS: 20, "encoder.norm": "rmsnorm"}, grid) == {STEPS: "highest"}
    assert edges({RATE: 0.1, STEPS: 10, "encoder.norm": "layernorm"}, grid) == {
        RATE: "lowest",
        STEPS: "lowest",
    }


def test_a_value_that_never_changes_is_no_edge() -> None:
    assert edges({STEPS: 10}, [tried({STEPS: 10}, 1.0), tried({STEPS: 10}, 2.0)]) == {}


def test_a_setting_in_words() -> None:
    assert in_words({RATE: 0.003, STEPS: 100}) == "learning_rate 0.003, warmup_steps 100"
