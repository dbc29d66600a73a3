"""The plan that was frozen before the first confirming run, and what came later than it."""

from collections.abc import Iterable
from dataclasses import dataclass

from studies.design.hypothesis import Hypothesis

LARGEST_FAMILY = 6
"""At most this many primary contrasts: more would leave each of them too little power."""


@dataclass(frozen=True)
class Frozen:
    """What a study fixed before its first confirming run.

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
        """How many contrasts share the error, whichever of them a call asks."""
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
