"""How far beyond the trained lengths an arm holds: one rule for terminal and report."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from store.aggregate import Interval


@runtime_checkable
class Averaged(Protocol):
    """An arm with the mean of a metric over its seeds; None where nothing was measured."""

    def interval(self, metric: str, length: int, split: str = "test") -> Interval | None: ...


@dataclass(frozen=True)
class Reach:
    """How far an arm's mean skill stays at or above the threshold.

    `learned` is None where the longest trained length was not measured; `skill` is that at this
    length, else at `fell`. `held` is the longest length up to which it holds, `fell` the first at
    which it does not, `unasked` the first at which nothing was measured, such as beyond a table.
    """

    learned: bool | None
    held: int | None = None
    fell: int | None = None
    skill: float | None = None
    unasked: int | None = None


def reach(arm: Averaged, longest: int, lengths: Iterable[int], threshold: float) -> Reach:
    """Follow the tested lengths upwards from the longest trained one."""
    trained = arm.interval("skill", longest) or arm.interval("skill", longest, "validation")
    if trained is None:
        return Reach(None)
    if trained.mean < threshold:
        return Reach(False, skill=trained.mean)
    held = longest
    for length in sorted(length for length in lengths if length > longest):
        skill = arm.interval("skill", length)
        if skill is None:
            return Reach(True, held, unasked=length)
        if skill.mean < threshold:
            return Reach(True, held, length, skill.mean)
        held = length
    return Reach(True, held)
