"""Hypotheses in a form that numbers can decide."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Direction = Literal["greater", "less", "different", "same"]
SIGNS = {"greater": ">", "less": "<", "different": "≠", "same": "≈"}
"""The sign of each direction, as written between two arms."""


@dataclass(frozen=True)
class Hypothesis:
    """A claim about two arms, or about two pairs, written down before the first confirming run.

    The value of a seed is the mean of `metric` over `lengths`; the effect is the mean over the
    seeds of `arm` minus that of `against`. Where `than` names another pair, its own difference is
    subtracted from that: an interaction, which is 0 where effects add up.

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
        than: The pair whose difference is subtracted, in the order of `arm` and `against`: the same
            change, made under another level of a second factor.
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
    than: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        twice = [arm for arm in self.arms if self.arms.count(arm) > 1]
        if twice:
            raise ValueError(
                f"{self.name}: an arm is compared with another; got {twice[0]!r} twice"
            )
        for key in ("name", "claim"):
            if not getattr(self, key).strip():
                raise ValueError(f"a hypothesis has a {key}; got {getattr(self, key)!r}")
        again = [length for length in self.lengths if self.lengths.count(length) > 1]
        if again:
            raise ValueError(f"{self.name}: each length is given once; got {again[0]} twice")
        if not self.lengths:
            raise ValueError(f"{self.name}: at least one length is needed; got none")
        if not self.smallest_effect > 0:
            raise ValueError(
                f"{self.name}: smallest_effect must be positive; got {self.smallest_effect}"
            )

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that it is about: two, or four of an interaction."""
        return (self.arm, self.against, *(self.than or ()))

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of the mean of each arm in the effect."""
        return (1.0, -1.0) if self.than is None else (1.0, -1.0, -1.0, 1.0)


LARGEST_FAMILY = 6
"""At most this many primary contrasts: more would leave each of them too little power."""


@dataclass(frozen=True)
class Frozen:
    """The part of a protocol that is fixed before the first confirming run.

    Args:
        hypotheses: The family of primary contrasts.
        seeds: The replicates that decide about them.
        announced: How many contrasts were fixed together, where that is more than `hypotheses`:
            a call may leave out some of them, and the others share the error all the same.

    Raises:
        ValueError: If there are too many hypotheses, or two of one name.
    """

    hypotheses: tuple[Hypothesis, ...]
    seeds: tuple[int, ...]
    announced: int = 0

    def __post_init__(self) -> None:
        names = [one.name for one in self.hypotheses]
        if len(names) > LARGEST_FAMILY:
            raise ValueError(
                f"a family has at most {LARGEST_FAMILY} primary contrasts; got {len(names)}: "
                f"{', '.join(names)}"
            )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"every hypothesis has a name of its own; got {twice[0]!r} twice")

    @property
    def family(self) -> int:
        """The number of contrasts that share the error rate, asked in this call or not."""
        return max(self.announced, len(self.hypotheses))

    def primary(self, hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
        """Those that the plan holds exactly as they are now."""
        return [one for one in hypotheses if one in self.hypotheses]

    def exploratory(self, hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
        """Those that came later, or were changed since."""
        return [one for one in hypotheses if one not in self.hypotheses]

    def later(self, seeds: Iterable[int]) -> list[int]:
        """The seeds that came later."""
        return sorted(set(seeds) - set(self.seeds))


def claim(name: str, contrast: str, panel: str, text: str, **other: Any) -> Hypothesis:
    """A hypothesis about two arms with a sign of `SIGNS` between them, such as "rope > none".

    Raises:
        ValueError: If there is no sign.
    """
    for direction, sign in SIGNS.items():
        arm, found, against = contrast.partition(f" {sign} ")
        if found:
            told: dict[str, Any] = {"direction": direction, **other}
            return Hypothesis(name, text, arm, against, panel, **told)
    raise ValueError(
        f"{name}: two arms with one of {', '.join(SIGNS.values())} between them; got {contrast!r}"
    )
