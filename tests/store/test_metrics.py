"""Records of metrics: one place that says what a number means."""

import pytest

from store.metrics import METRICS, Metric, Metrics, metric_of


def test_a_metric_without_a_record_gets_a_neutral_one() -> None:
    assert metric_of("my_probe") == Metric("my_probe", "my_probe")
    assert metric_of("my_probe").floor_given(0.25) is None


@pytest.mark.parametrize(
    ("name", "floor"),
    [("accuracy", 0.25), ("floor", 0.25), ("exact", 0.0), ("skill", 0.0), ("nll", None)],
)
def test_what_a_model_that_learned_nothing_has(name: str, floor: float | None) -> None:
    assert metric_of(name).floor_given(0.25) == floor


def test_names_are_chosen_by_kind_and_by_who_is_scored() -> None:
    assert METRICS.names("time") == ("steps_to_fit",)
    assert "nll" in METRICS.names(scored=True)
    assert "nll" not in METRICS.names("share", scored=True)


def test_two_metrics_of_one_name_are_refused() -> None:
    metrics = Metrics(Metric("depth", "depth"))
    metrics.add(Metric("depth", "depth"))
    with pytest.raises(ValueError, match="depth"):
        metrics.add(Metric("depth", "another one"))
