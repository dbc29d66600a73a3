"""The Pareto front, against its definition, and against Optuna's."""

import optuna
from hypothesis import given
from hypothesis import strategies as st

from studies.experiment.search import Direction, front
from tests.messages import Messages

AIMS: list[Direction] = ["maximize", "minimize"]
PLACES = st.sampled_from([0.0, 0.5, 1.0, 2.0])
POINTS = st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=9)


def test_a_front_by_hand() -> None:
    points = {"best": (0.9, 5.0), "cheap": (0.5, 1.0), "beaten": (0.5, 2.0), "worse": (0.4, 5.0)}
    assert front(points, AIMS) == ["best", "cheap"]
    assert front(points, ["minimize", "maximize"]) == ["worse"]


def test_points_that_are_alike_stay_together() -> None:
    assert front({"a": (1.0, 1.0), "b": (1.0, 1.0)}, AIMS) == ["a", "b"]


@given(POINTS)
def test_what_is_left_out_is_beaten_by_what_stays_and_what_stays_by_nothing(
    drawn: list[tuple[float, float]],
) -> None:
    points = dict(enumerate(drawn))
    kept = front(points, AIMS)

    def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
        return a[0] >= b[0] and a[1] <= b[1] and a != b

    for name, point in points.items():
        assert (name in kept) != any(beats(points[one], point) for one in kept)


def test_optuna_finds_the_same_front() -> None:
    study = optuna.create_study(directions=AIMS)
    points = {n: ((n * 7 % 5) / 4, (n * 11 % 7) / 3) for n in range(20)}
    for values in points.values():
        study.add_trial(optuna.trial.create_trial(values=values))
    assert sorted(front(points, AIMS)) == sorted(trial.number for trial in study.best_trials)


def test_a_point_without_a_value_for_each_objective_is_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        front({"a": (1.0, 2.0), "b": (1.0,)}, AIMS)
