"""Metrics: what the numbers of a run mean, said once for everyone who writes, reads or shows them.

A metric that every trained run is scored by has a record here and a way to compute it in
`studies.training.evaluation`. Whoever meets a metric asks `metric_of`; one without a record, such
as that of a user's probe, gets a neutral one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["share", "time", "nats", "number"]
Direction = Literal["higher", "lower"]

FLOOR = "floor"
"""The metric that holds the accuracy of the best blind guess, at each split and length."""


@dataclass(frozen=True)
class Metric:
    """What a metric is.

    Args:
        name: As it is stored.
        title: For people, such as "skill (0 = best blind guess, 1 = all right)".
        kind: A share of a whole, a time that a run may end without reaching (in steps), nats, or
            some number.
        floor: What a model that learned nothing has: a number, or the name of the metric that
            holds it for each split and length; None: unknown.
        ceiling: What a perfect model has; None: unknown.
        direction: What is better; None: neither.
        format: Of its values.
        scored: Is every trained run scored by it, at each length?
    """

    name: str
    title: str
    kind: Kind = "number"
    floor: float | str | None = None
    ceiling: float | None = None
    direction: Direction | None = None
    format: str = ".2f"
    scored: bool = False

    def floor_given(self, blind_guess: float | None) -> float | None:
        """What a model that learned nothing has where the best blind guess has this accuracy."""
        return blind_guess if isinstance(self.floor, str) else self.floor


class Metrics:
    """Records of metrics, by name."""

    def __init__(self, *records: Metric) -> None:
        self._records = {record.name: record for record in records}

    def add(self, record: Metric) -> None:
        """Add a metric.

        Raises:
            ValueError: If another one has its name.
        """
        if self._records.setdefault(record.name, record) != record:
            raise ValueError(f"there is a metric {record.name!r} already; name yours differently")

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._records.values())

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __getitem__(self, name: str) -> Metric:
        return self._records[name]

    def names(self, kind: Kind | None = None, scored: bool | None = None) -> tuple[str, ...]:
        """The names of those of a kind, and of those that every trained run is scored by."""
        return tuple(
            one.name for one in self if kind in (None, one.kind) and scored in (None, one.scored)
        )


METRICS = Metrics(
    Metric(
        "accuracy",
        "accuracy (share of right answers)",
        kind="share",
        floor=FLOOR,
        ceiling=1.0,
        direction="higher",
        scored=True,
    ),
    Metric(
        "exact",
        "exact match (share of sequences with every answer right)",
        kind="share",
        floor=0.0,
        ceiling=1.0,
        direction="higher",
        scored=True,
    ),
    Metric(
        "skill",
        "skill (0 = best blind guess, 1 = all right)",
        kind="share",
        floor=0.0,
        ceiling=1.0,
        direction="higher",
        scored=True,
    ),
    Metric("nll", "nll (nats)", kind="nats", direction="lower", format=".3f", scored=True),
    Metric(
        FLOOR,
        "floor (accuracy of the best blind guess)",
        kind="share",
        floor=FLOOR,
        scored=True,
    ),
    Metric(
        "steps_to_fit",
        "steps to fit",
        kind="time",
        direction="lower",
        format=".0f",
    ),
)


def metric_of(name: str) -> Metric:
    """The record of a metric; a neutral one where there is none."""
    return METRICS[name] if name in METRICS else Metric(name, name)
