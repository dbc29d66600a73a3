"""Match the arms of a study in size or in cost, so that nothing else tells them apart.

Every arm that is not within the tolerance of the reference arm gets another value of one knob,
such as the hidden width of its feed-forward layers. What it gets is part of its config, and so of
what identifies its runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from registry.build import threads
from registry.errors import ConfigError, Problem
from studies.errors import BrokenModelError, model_answers, model_is_built
from studies.experiment.overlays import at
from studies.training.settings import Count, RunConfig, Strictly, task_of

if TYPE_CHECKING:
    from torch import nn

Cost = Literal["parameters", "flops_per_token", "tokens", "steps"]

KNOBS: Mapping[Cost, tuple[str, ...]] = {
    "parameters": ("encoder.feedforward.d_ff", "encoder.d_model"),
    "flops_per_token": ("encoder.feedforward.d_ff", "encoder.d_model"),
    "tokens": ("training.steps", "training.batch_size"),
    "steps": ("training.steps",),
}
"""The keys that change each cost; the first one is adjusted by default."""

UNITS: Mapping[Cost, str] = {
    "parameters": "parameters",
    "flops_per_token": "FLOPs per token",
    "tokens": "training tokens",
    "steps": "steps",
}

MOST = 2**24
"""No knob is turned beyond this."""


class Match(Strictly):
    """A rule that gives every arm the cost of a reference arm, on each panel.

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
        return at(config.plain(), self.knob)

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
        others = " or ".join(one for one in KNOBS[self.match.what] if one != self.match.knob)
        others = f" ({others})" if others else ""
        return self.refused(
            f"{arm} cannot be matched to {reference}: of {self.target:,.0f} {unit} the nearest is "
            f"{cost:,.0f} ({off:+.1f} %) at {self.match.knob}={value}, and "
            f"{self.match.within * 100:g} % is allowed; adjust another key{others}, take a "
            "smaller study.match.step, or allow more by study.match.within"
        )

    def refused(self, rule: str) -> ConfigError:
        return ConfigError([Problem("study.match", rule, item=self.names[0])])


def _between(low: int, high: int, share: float) -> int:
    """A number strictly between two, at this share of the way.

    Most costs are straight lines in their knob, so that two looks along the line are enough.
    """
    return min(max(low + round(share * (high - low)), low + 1), high - 1)


def turn(config: RunConfig, knob: str, value: int | None) -> dict[str, Any]:
    """The overlay that sets the knob of a config; an option of a part comes with its name."""
    if value is None:
        return {}
    *steps, last = knob.split(".")
    overlay: dict[str, Any] = {}
    inside, here = overlay, config.plain()
    for step in steps:
        here = here.get(step) or {}
        inside[step] = {"name": here["name"]} if "name" in here else {}
        inside = inside[step]
    inside[last] = value
    return overlay


def costly(config: RunConfig) -> list[Any]:
    """The part of a config that decides about costs."""
    training = config.training
    sizes = (training.steps, training.batch_size, training.train_lengths)
    return [config.encoder, config.model, config.task, sizes]


SEQUENCES = 2
"""Number of sequences to count FLOPs on; FLOPs per token do not depend on it."""


@dataclass(frozen=True)
class Costs:
    """The costs of one run.

    Args:
        parameters: Those of the built model, each once, however often it is used.
        flops_per_token: Floating-point operations of a forward pass over sequences of the longest
            trained length, divided by their tokens. Matrix products alone are counted, two
            operations for each multiplication with its addition, whatever a mask would spare.
            Training costs about three times as much.
        tokens: That are trained on, without padding: steps × batch size × the mean tokens of a
            sequence.
        steps: Of training, as planned.
        broken: What the model raised where it should have answered, so that FLOPs are not known;
            or what builds it raised, so that nobody knows its parameters either.
    """

    parameters: int | None
    flops_per_token: float | None
    tokens: float
    steps: int
    broken: str = ""


def costs_of(config: RunConfig) -> Costs:
    """The costs of a run that trains."""
    parameters, flops, broken = None, None, ""
    try:
        model = _built(config)
        parameters = _parameters(model)
        flops = _flops(model, config)
    except (BrokenModelError, ConfigError) as error:
        broken = str(error)
    return Costs(parameters, flops, tokens_of(config), config.training.steps, broken)


def tokens_of(config: RunConfig) -> float:
    """The number of training tokens, with every trained length drawn equally often."""
    from studies.training.data import trained_lengths

    task, training = task_of(config.task), config.training
    low, high = trained_lengths(task, training)
    mean = sum(task.seq(length) for length in range(low, high + 1)) / (high + 1 - low)
    return training.steps * training.batch_size * mean


COUNTED: Mapping[str, Counted] = {
    "parameters": lambda config: _parameters(_built(config)),
    "flops_per_token": lambda config: _flops(_built(config), config),
    "tokens": tokens_of,
    "steps": lambda config: config.training.steps,
}
"""The function that counts each cost."""


def _built(config: RunConfig) -> "nn.Module":
    """The model of a run.

    Raises:
        ConfigError: If its encoder or its function refuses its options.
        BrokenModelError: If what builds it raises anything else.
    """
    from studies.seeds import Seeds
    from studies.training.models import build_model

    with model_is_built():
        return build_model(config, Seeds(0, 0))


def _parameters(model: "nn.Module") -> int:
    return sum(one.numel() for one in model.parameters())


@threads()
def _flops(model: "nn.Module", config: RunConfig) -> float:
    import torch

    from registry.inspect import counting

    task = task_of(config.task)
    drawn = torch.Generator().manual_seed(0)
    tokens = task.sample(drawn, SEQUENCES, config.training.train_lengths[1]).tokens
    with torch.random.fork_rng(), torch.no_grad(), counting() as counter, model_answers():
        model.eval()(tokens)
    return counter.get_total_flops() / tokens.numel()
