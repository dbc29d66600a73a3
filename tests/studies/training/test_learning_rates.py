"""Learning rates, against their formulas worked by hand."""

import math
from typing import get_args

import pytest

from studies.training.loop import rate_at
from studies.training.settings import Schedule, Training

SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)


def rate(step: int, schedule: Schedule, warmup_steps: int = 10, final_rate: float = 0.1) -> float:
    training = Training(
        steps=110,
        learning_rate=2.0,
        schedule=schedule,
        warmup_steps=warmup_steps,
        final_rate=final_rate,
    )
    return rate_at(step, training, d_model=64)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_the_rate_rises_linearly_to_its_peak(schedule: Schedule) -> None:
    assert rate(1, schedule) == pytest.approx(0.2)
    assert rate(5, schedule) == pytest.approx(1.0)
    assert rate(10, schedule) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("schedule", "middle", "last"),
    [("constant", 2.0, 2.0), ("linear", 1.1, 0.2), ("cosine", 1.1, 0.2)],
)
def test_the_rate_falls_to_its_final_share(schedule: Schedule, middle: float, last: float) -> None:
    assert rate(60, schedule) == pytest.approx(middle)
    assert rate(110, schedule) == pytest.approx(last)


def test_cosine_falls_slowly_at_first() -> None:
    quarter = 2.0 * (0.1 + 0.9 * (1 + math.cos(math.pi / 4)) / 2)

    assert rate(35, "cosine") == pytest.approx(quarter)


def test_noam_is_the_formula_of_the_paper() -> None:
    assert rate(5, "noam") == pytest.approx(2.0 / 8 * 5 / 10**1.5)
    assert rate(40, "noam") == pytest.approx(2.0 / 8 / math.sqrt(40))
    assert rate(10, "noam") == pytest.approx(2.0 / 8 / math.sqrt(10))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("warmup_steps", [0, 1, 10])
def test_no_step_is_at_rate_zero(schedule: Schedule, warmup_steps: int) -> None:
    assert all(rate(step, schedule, warmup_steps) > 0 for step in (1, 2, 50, 110))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_training_of_one_step_has_a_rate(schedule: Schedule) -> None:
    training = Training(
        steps=1, learning_rate=0.1, schedule=schedule, warmup_steps=0, final_rate=0.5
    )

    assert 0 < rate_at(1, training, d_model=16) <= 0.1
