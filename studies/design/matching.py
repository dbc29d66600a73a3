"""Match the arms of a study in size or in cost, so that nothing else tells them apart.

Every arm that is not within the tolerance of the reference arm gets another value of one knob,
such as the hidden width of its feed-forward layers. What it gets is part of its config, and so of
what identifies its runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Annotated, Any, Literal

from pydantic import Field

from registry.errors import ConfigError, Problem
from studies.training.settings import Count, RunConfig, Strictly

Cost = Literal["parameters", "flops_per_token", "tokens", "steps"]

KNOBS: Mapping[Cost, tuple[str, ...]] = {
    "parameters": ("encoder.feedforward.d_ff", "encoder.d_model"),
    "flops_per_token": ("encoder.feedforward.d_ff", "encoder.d_model"),
    "tokens": ("training.steps", "training.batch_size"),
    "steps": ("training.steps",),
}
"""What changes a cost; the first is turned where a study does not say otherwise."""

UNITS: Mapping[Cost, str] = {
    "parameters": "parameters",
    "flops_per_token": "FLOPs per token",
    "tokens": "training tokens",
    "steps": "steps",
}

MOST = 2**24
"""No knob is turned beyond this."""


class Match(Strictly):
    """What every arm has as much of as a reference arm, on each panel.

    Args:
        what: The cost.
        to: The reference arm, which stays as it is; null: the first that the study declares.
        adjust: The knob, a dotted key that holds a whole number; null: the first of `KNOBS`.
        step: The knob is a multiple of this, such as the number of heads.
        within: How far apart two arms may stay, as a share of the reference. An arm that is as
            near as that without being adjusted is left alone.
    """

    what: Cost
    to: str | None = None
    adjust: str | None = None
    step: Count = 1
    within: Annotated[float, Field(ge=0, lt=1)] = 0.01

    @property
    def knob(self) -> str:
        """The dotted key that is adjusted."""
        return self.adjust or KNOBS[self.what][0]

    def value_in(self, config: RunConfig) -> Any:
        """The value of the knob in a config; None where it is left at its default."""
        value: Any = config.plain()
        for step in self.knob.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        return value

    def __str__(self) -> str:
        return f"{UNITS[self.what]} within {self.within * 100:g} %, by {self.knob}"


def read_match(given: Any) -> Any:
    """`match: parameters` is short for `match: {what: parameters}`."""
    return {"what": given} if isinstance(given, str) else given


Counted = Callable[[RunConfig], int | float]
Turned = Callable[[int | None], RunConfig]
"""The config of an arm with this value of the knob; None: as it is written."""


def matched(match: Match, names: tuple[str, str], target: float, turned: Turned) -> int | None:
    """The value of the knob at which an arm costs as much as the reference; None: as it is.

    The cost is taken to grow with the knob. Of all values the nearest is taken.

    Args:
        match: What is matched.
        names: Of the arm and of the reference.
        target: What the reference costs.
        turned: The config of the arm at a value of the knob.

    Raises:
        ConfigError: If no value comes near enough; it tells what was reached, and what would help.
    """
    from studies.design.costs import COUNTED

    search = _Search(match, names, target, turned, COUNTED[match.what])
    written = float(search.counted(turned(None)))
    if search.near(written):
        return None
    best = min(search.candidates(), key=lambda one: abs(one[1] - target))
    if not search.near(best[1]):
        raise search.unmatched(*best)
    return best[0]


@dataclass(frozen=True)
class _Search:
    """The search for one arm's knob."""

    match: Match
    names: tuple[str, str]
    target: float
    turned: Turned
    counted: Counted

    def near(self, cost: float) -> bool:
        return abs(cost - self.target) <= self.match.within * self.target

    def at(self, multiple: int) -> float:
        """The cost at a multiple of the step."""
        try:
            return float(self.counted(self.turned(multiple * self.match.step)))
        except ConfigError as error:
            told = "; ".join(one.rule for one in error.problems)
            value = f"{self.match.knob}={multiple * self.match.step}"
            rule = f"{self.names[0]} cannot be matched: {value} is refused ({told})"
            advice = "say which multiples it takes in study.match.step, or what else to adjust in"
            raise self.refused(f"{rule}; {advice} study.match.adjust") from None

    def candidates(self) -> list[tuple[int, float]]:
        """The values of the knob on either side of the target, with their costs."""
        low, high = 1, 8
        cost = {one: self.at(one) for one in (low, high)}
        if cost[low] == cost[high]:
            raise self.refused(
                f"{self.match.knob} does not change the {UNITS[self.match.what]} of "
                f"{self.names[0]}; study.match.adjust can be {' or '.join(KNOBS[self.match.what])}"
            )
        while cost[high] < self.target and high * self.match.step < MOST:
            low, high = high, high * 2
            cost[high] = self.at(high)
        for line in cycle((True, True, False)):
            if high - low <= 1:
                break
            share = (self.target - cost[low]) / (cost[high] - cost[low]) if line else 0.5
            middle = _between(low, high, share)
            cost[middle] = self.at(middle)
            low, high = (middle, high) if cost[middle] < self.target else (low, middle)
        return [(one * self.match.step, cost[one]) for one in (low, high)]

    def unmatched(self, value: int, cost: float) -> ConfigError:
        """Nothing is near enough."""
        arm, reference = self.names
        unit, off = UNITS[self.match.what], (cost / self.target - 1) * 100
        others = f" ({self.others()})" if self.others() else ""
        return self.refused(
            f"{arm} cannot be matched to {reference}: of {self.target:,.0f} {unit} the nearest is "
            f"{cost:,.0f} ({off:+.1f} %) at {self.match.knob}={value}, and "
            f"{self.match.within * 100:g} % is allowed; adjust another key{others}, take a "
            "smaller study.match.step, or allow more by study.match.within"
        )

    def others(self) -> str:
        return " or ".join(one for one in KNOBS[self.match.what] if one != self.match.knob)

    def refused(self, rule: str) -> ConfigError:
        return ConfigError([Problem(f"study.match ({self.names[0]})", rule)])


def _between(low: int, high: int, share: float) -> int:
    """A number strictly between two, at this share of the way.

    Most costs are straight lines in their knob, so that two looks along the line are enough.
    """
    return min(max(low + round(share * (high - low)), low + 1), high - 1)
