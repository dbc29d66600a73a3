"""How long a call still takes: steps left at its speed, runs left where steps tell nothing."""

import pytest

from studies.execution.progress import Progress, TimeLeft, steps_left
from studies.experiment.plan import Cell

CELL = Cell(0, "shift", "rope")


def at(
    seconds: float, steps: int, left: int | None, finished: int = 0, expected: int = 4
) -> Progress:
    return Progress({CELL: ["done"] * finished}, {}, expected, steps, seconds, left)


def test_time_left_is_told_before_any_run_has_ended_and_falls_while_none_ends() -> None:
    clock = TimeLeft()
    clock.seconds(at(5.0, 1, 400))  # workers took 5 s to start

    told = [
        clock.seconds(at(5.0 + second, 1 + 10 * second, 400 - 10 * second)) for second in (4, 8, 16)
    ]

    # 10 steps a second, whatever the start took: 360, 320 and 240 steps are left.
    assert told == pytest.approx([36.0, 32.0, 24.0])


def test_runs_done_before_this_call_change_nothing() -> None:
    clock, resumed = TimeLeft(), TimeLeft()
    for progress in (at(0.0, 0, 200), at(1.0, 10, 190), at(11.0, 110, 90)):
        fresh = clock.seconds(progress)
    for progress in (at(0.0, 0, 200, 2, 6), at(1.0, 10, 190, 2, 6), at(11.0, 110, 90, 2, 6)):
        again = resumed.seconds(progress)

    assert fresh == again == pytest.approx(9.0)


def test_a_speed_is_not_told_before_it_has_settled() -> None:
    clock = TimeLeft()

    assert clock.seconds(at(0.0, 0, 400)) is None
    assert clock.seconds(at(6.0, 3, 397)) is None
    assert clock.seconds(at(7.0, 13, 387)) is None
    assert clock.seconds(at(8.0, 23, 377)) == pytest.approx(37.7)


def test_where_runs_have_no_steps_they_are_counted_and_a_late_one_adds_no_time() -> None:
    clock = TimeLeft()
    assert clock.seconds(at(9.0, 0, None)) is None
    told = [clock.seconds(at(second, 0, None, 1)) for second in (10.0, 15.0, 20.0, 40.0)]

    # 10 s a run, three left; what passed since the last end is a part of the next one.
    assert told == pytest.approx([30.0, 25.0, 20.0, 20.0])


def test_runs_that_end_without_a_step_are_counted_though_they_plan_some() -> None:
    assert TimeLeft().seconds(at(1.0, 0, 100)) is None
    clock = TimeLeft()
    clock.seconds(at(0.0, 0, 400))

    assert clock.seconds(at(10.0, 0, 300, 1)) == pytest.approx(30.0)


def test_nothing_is_left_when_all_runs_are_over() -> None:
    clock = TimeLeft()
    clock.seconds(at(0.0, 1, 99))

    assert clock.seconds(at(10.0, 100, 0, 4)) is None


def test_steps_left_are_those_of_unfinished_runs_without_what_is_done_of_them() -> None:
    assert steps_left([100, 100, 50], [30, 0]) == 220
    assert steps_left([100, 0], [30]) is None
    assert steps_left([100], [130]) == 0
    assert steps_left([], []) == 0
