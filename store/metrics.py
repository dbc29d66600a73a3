"""The metrics, and what is known of each: evaluation, statistics, tables and reports ask here."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

FLOOR = "floor"
"""The metric that holds the accuracy of the best blind guess, at each split and length."""


@dataclass(frozen=True)
class Metric:
    """A metric: its title, its range, which way is better, and how its values are printed.

    `floor` is what a model that learned nothing scores at every length, `ceiling` what a perfect
    one does; None where there is no such number. Where the floor depends on task and length, as for
    accuracy, it is stored beside each score, as the metric that `floor_in` names. `direction` is
    None where neither way is better. A "share" lies between 0 and 1; a "time" counts steps until a
    criterion, which a run may end without; "nats" are a loss. Every trained run is `scored` at each
    length by some of them.
    """

    name: str
    title: str
    floor: float | None = None
    ceiling: float | None = None
    direction: Literal["maximize", "minimize"] | None = None
    kind: Literal["share", "time", "nats", "number"] = "number"
    format: str = ".4g"
    floor_in: str | None = None
    scored: bool = False

    def floor_given(self, blind_guess: float | None) -> float | None:
        """Return what a model that learned nothing scores where a blind guess has this accuracy."""
        return self.floor if self.floor_in is None else blind_guess

    def text(self, value: float | None) -> str:
        """Return a value as it is printed; a dash for one that is missing."""
        return "-" if value is None else format(value, self.format)


SHARE: Any = {"kind": "share", "format": ".3f", "scored": True}
BEST_IS_ONE: Any = {**SHARE, "ceiling": 1.0, "direction": "maximize"}

METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric(
                "skill", "skill (0 = best blind guess, 1 = all right)", floor=0.0, **BEST_IS_ONE
            ),
            Metric("accuracy", "accuracy (share of right answers)", floor_in=FLOOR, **BEST_IS_ONE),
            Metric(
                *("exact", "exact match (share of sequences with every answer right)"),
                floor=0.0,
                **BEST_IS_ONE,
            ),
            Metric(
                *("nll", "negative log-likelihood (nats)"),
                direction="minimize",
                kind="nats",
                scored=True,
            ),
            Metric(FLOOR, "accuracy of the best blind guess", floor_in=FLOOR, **SHARE),
            Metric(
                *("steps_to_fit", "steps until the criterion of fit was met"),
                direction="minimize",
                kind="time",
                format=".0f",
            ),
        )
    }
)
SCORED = tuple(metric.name for metric in METRICS.values() if metric.scored)
"""What every trained run is scored by, at each length."""


def metric_of(name: str) -> Metric:
    """Return what is known of a metric; a neutral record for one that a user measures."""
    return METRICS.get(name) or Metric(name, name)
