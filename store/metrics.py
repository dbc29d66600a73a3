"""The metrics, and what is known of each: evaluation, statistics, tables and reports ask here."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """A metric: its title, its range, which way is better, and how its values are printed.

    `floor` is what a model that learned nothing scores at every length, `ceiling` what a perfect
    one does; None where there is no such number, or, as for accuracy, where it depends on task and
    length: then it is stored beside each score as the metric "floor". `direction` is None where
    neither way is better. A "share" lies between 0 and 1; a "time" counts steps until a criterion,
    which a run may end without; "nats" are a loss.
    """

    name: str
    title: str
    floor: float | None = None
    ceiling: float | None = None
    direction: Literal["maximize", "minimize"] | None = None
    kind: Literal["share", "time", "nats", "number"] = "number"
    format: str = ".4g"

    def text(self, value: float | None) -> str:
        """Return a value as it is printed; a dash for one that is missing."""
        return "-" if value is None else format(value, self.format)


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric(
                "skill",
                "skill (0 = best blind guess, 1 = all right)",
                floor=0.0,
                ceiling=1.0,
                direction="maximize",
                kind="share",
                format=".3f",
            ),
            Metric(
                "accuracy",
                "accuracy (share of right answers)",
                ceiling=1.0,
                direction="maximize",
                kind="share",
                format=".3f",
            ),
            Metric(
                "exact",
                "exact match (share of sequences with every answer right)",
                floor=0.0,
                ceiling=1.0,
                direction="maximize",
                kind="share",
                format=".3f",
            ),
            Metric("nll", "negative log-likelihood (nats)", direction="minimize", kind="nats"),
            Metric("floor", "accuracy of the best blind guess", kind="share", format=".3f"),
            Metric(
                "steps_to_fit",
                "steps until the criterion of fit was met",
                direction="minimize",
                kind="time",
                format=".0f",
            ),
        )
    }
)


def metric_of(name: str) -> Metric:
    """Return what is known of a metric; a neutral record for one that a user measures."""
    return METRICS.get(name) or Metric(name, name)
