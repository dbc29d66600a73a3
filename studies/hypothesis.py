"""What a study claims, in a form that numbers can decide."""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["greater", "less", "different", "same"]


@dataclass(frozen=True)
class Hypothesis:
    """A claim about two arms, written down before the first confirming run.

    The value of a seed is the mean of `metric` over `lengths`; the effect is the mean over the
    seeds of `arm` minus that of `against`.

    Args:
        name: Unique in its study.
        claim: The claim in one sentence.
        arm: The arm that it is about.
        against: The arm that it is compared with.
        panel: The panel, by its label, whose runs decide.
        lengths: The lengths whose scores are averaged.
        metric: The metric of the scores.
        direction: What the effect is claimed to be; "same" claims that it lies within
            ±`smallest_effect`.
        smallest_effect: The smallest effect of interest δ, in units of the metric.
    """

    name: str
    claim: str
    arm: str
    against: str
    panel: str
    lengths: tuple[int, ...]
    metric: str = "skill"
    direction: Direction = "greater"
    smallest_effect: float = 0.1

    def __post_init__(self) -> None:
        if self.arm == self.against:
            raise ValueError(
                f"{self.name}: an arm is compared with another; got {self.arm!r} twice"
            )
        if not self.lengths:
            raise ValueError(f"{self.name}: at least one length is needed; got none")
        if not self.smallest_effect > 0:
            raise ValueError(
                f"{self.name}: smallest_effect must be positive; got {self.smallest_effect}"
            )
