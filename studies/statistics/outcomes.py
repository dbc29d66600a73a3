"""What came of the confirming seeds of an arm, without a word about where it is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from store.aggregate import mean_of

PENDING = ("planned", "running")

Measure = tuple[str, int]
"""A metric at a length, such as ("skill", 32)."""

SCORES = ("accuracy", "exact", "skill", "nll")
"""What every trained run is scored by at each tested length."""

FLOORS = {"skill": 0.0, "exact": 0.0}
"""What a model that learned nothing scores, by metric, at every length."""

TIMES = ("steps_to_fit",)
"""Metrics that are times: steps until a criterion, which a run may end without."""

CEILINGS = {"skill": 1.0, "exact": 1.0, "accuracy": 1.0}
"""What a perfect model scores."""


@dataclass(frozen=True)
class SeedOutcome:
    """What came of one seed.

    Args:
        status: The status of its run, as in the store.
        values: Its test scores; None where a length could not be asked.
        fit: Its skill at the longest trained length.
        censored: The times among the values at which the run ended, its criterion not reached.
    """

    status: str = "done"
    values: Mapping[Measure, float | None] = field(default_factory=dict[Measure, float | None])
    fit: float | None = None
    censored: frozenset[Measure] = frozenset()


@dataclass(frozen=True)
class Fit:
    """How well an arm learned what it was trained on; a diverged seed has skill 0.

    Args:
        mean: Mean skill at the longest trained length; None where it was not measured.
        solved: How many seeds reach the threshold.
        seeds: How many seeds there are.
        learned: Does the mean reach the threshold?
        sure: Is that so whatever the failed seeds would have reached, from skill 0 to 1?
    """

    mean: float | None
    solved: int
    seeds: int
    learned: bool
    sure: bool = True


@dataclass(frozen=True)
class ArmOutcome:
    """What came of the confirming seeds of one arm on one panel.

    Args:
        seeds: By replicate number.
        longest_trained: The longest trained length; None where the panel has no lengths, and so
            nothing to extrapolate to.
        floors: What a model that learned nothing scores, where that is not 0 in skill and exact.
        reason: Why there are no seeds, where tuning found no setting.
    """

    seeds: Mapping[int, SeedOutcome]
    longest_trained: int | None = None
    floors: Mapping[Measure, float] = field(default_factory=dict[Measure, float])
    reason: str = ""

    def count(self, *statuses: str) -> int:
        """How many seeds have one of these statuses."""
        return sum(one.status in statuses for one in self.seeds.values())

    def fit(self, threshold: float) -> Fit:
        """How well the arm learned what it was trained on."""
        values = [_fit(one) for one in self.seeds.values() if one.status != "failed"]
        known = [value for value in values if value is not None]
        mean = _mean(values) if values else None
        learned = mean is not None and mean >= threshold
        solved = sum(value >= threshold for value in known)
        failed = self.count("failed")
        open_ = [mean_of([*known, *[one] * failed]) for one in (0.0, 1.0)] if failed else []
        sure = len({one >= threshold for one in open_}) < 2
        return Fit(mean, solved, len(self.seeds), learned, sure)

    def value(self, seed: int, metric: str, lengths: tuple[int, ...]) -> float | None:
        """The mean of a metric over lengths of one seed; None where a length has no score.

        A diverged seed scores what a model that learned nothing does.
        """
        found = self.seeds[seed]
        if found.status == "diverged":
            return self.floor(metric, lengths)
        return _mean([found.values.get((metric, length)) for length in lengths])

    def measured(self, metric: str, lengths: tuple[int, ...]) -> list[float]:
        """One value a seed that has one: what a failed run left is none."""
        counted = [seed for seed, one in self.seeds.items() if one.status != "failed"]
        values = (self.value(seed, metric, lengths) for seed in counted)
        return [value for value in values if value is not None]

    def floor(self, metric: str, lengths: tuple[int, ...]) -> float | None:
        """The mean over lengths of what a model scores that learned nothing; None if unknown."""
        return _mean([floor_of((metric, length), self.floors) for length in lengths])


def floor_of(measure: Measure, floors: Mapping[Measure, float]) -> float | None:
    """What a model scores that learned nothing; None if that is not known."""
    return floors.get(measure, FLOORS.get(measure[0]))


def with_diverged(values: Sequence[float], diverged: int, floor: float | None) -> list[float]:
    """What seeds measured, and what those that diverged are counted with, as in a verdict.

    Where no seed measured anything, or no floor is known, there is nothing to count them beside.
    """
    return [*values, *[floor] * diverged] if values and floor is not None else list(values)


def _fit(seed: SeedOutcome) -> float | None:
    return 0.0 if seed.status == "diverged" else seed.fit


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean_of(known) if len(known) == len(values) else None
