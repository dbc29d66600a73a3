"""Metrics are described once."""

import pytest

from store.metrics import METRICS, metric_of


def test_scores_of_every_run_are_described() -> None:
    assert {"accuracy", "exact", "skill", "nll", "floor", "steps_to_fit"} <= set(METRICS)
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.title
    shares = {name for name, metric in METRICS.items() if metric.kind == "share"}
    assert shares == {"accuracy", "exact", "skill", "floor"}


def test_the_floor_of_accuracy_depends_on_the_task() -> None:
    assert metric_of("accuracy").floor is None
    assert (metric_of("skill").floor, metric_of("exact").floor) == (0.0, 0.0)


def test_an_unknown_metric_is_neutral() -> None:
    metric = metric_of("relative_mass")
    assert (metric.floor, metric.ceiling, metric.direction, metric.kind) == (
        *(None, None, None),
        "number",
    )
    assert (metric.text(0.123456), metric.text(None)) == ("0.1235", "-")


@pytest.mark.parametrize(
    ("name", "floor"),
    [("accuracy", 0.25), ("floor", 0.25), ("exact", 0.0), ("skill", 0.0), ("nll", None)],
)
def test_what_a_model_that_learned_nothing_scores(name: str, floor: float | None) -> None:
    assert metric_of(name).floor_given(0.25) == floor
