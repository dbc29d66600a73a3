"""Cut the scores of one config, gathered in arrays, into groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

Values: TypeAlias = tuple[float | None, ...]
# Configs share seeds and lengths as a rule, so what is cut here serves for many of them.
Places: TypeAlias = slice | list[int]


@dataclass(frozen=True, eq=False)
class Seeds:
    """The seeds that the values of a part are of, one for each."""

    numbers: Sequence[int]

    @cached_property
    def distinct(self) -> bool:
        """Does no seed occur twice?"""
        return len(set(self.numbers)) == len(self.numbers)

    def fit(self, other: "Seeds") -> bool:
        """Tell whether others are the same seeds in the same order."""
        return self is other or self.numbers == other.numbers

    @cached_property
    def order(self) -> list[int]:
        """The places of the seeds in the order of the seeds."""
        return sorted(range(len(self.numbers)), key=self.numbers.__getitem__)


@dataclass(frozen=True, eq=False)
class Part:
    """Where in the arrays of a config the values of one group are, and their seeds."""

    key: tuple[Any, ...]
    seeds: Seeds
    places: Places

    def of(self, values: Values) -> Values:
        """Take the values of the group out of all those of the config."""
        if isinstance(self.places, slice):
            return values[self.places]
        return tuple([values[at] for at in self.places])


def cut(seeds: Sequence[int], columns: Sequence[Sequence[Any]]) -> list[Part]:
    """Tell which of the values of a config belong together: those with the same key.

    A key is made of what the columns hold; without a column all are one group.
    """
    found: dict[tuple[Any, ...], list[int]] = {}
    keys = zip(*columns, strict=True) if columns else ((),) * len(seeds)
    for at, key in enumerate(keys):
        found.setdefault(key, []).append(at)
    # Where runs were measured alike a group is every so-manieth value, which is cut out at once.
    return [
        Part(key, Seeds([seeds[at] for at in places]), _regular(places))
        for key, places in found.items()
    ]


def mean_by_seed(seeds: Sequence[Seeds], columns: Sequence[Values]) -> list[float]:
    """Return the mean of each seed that has a value, in the order of the seeds.

    A column holds the values of one config, for its seeds.
    """
    first = seeds[0]
    alike = first.distinct and all([own.fit(first) for own in seeds])
    if alike and not any([None in values for values in columns]):
        # As a rule every config was run once with each seed: all are taken at once.
        totals = list(map(sum, zip(*cast("Any", columns), strict=True)))
        return [totals[at] / len(columns) for at in first.order]
    found: dict[int, list[float]] = {}
    for own, values in zip(seeds, columns, strict=True):
        for seed, value in zip(own.numbers, values, strict=True):
            if value is not None:
                found.setdefault(seed, []).append(value)
    return [sum(each) / len(each) for _, each in sorted(found.items())]


def _regular(places: list[int]) -> Places:
    step = places[1] - places[0] if len(places) > 1 else 1
    even = range(places[0], places[-1] + 1, step)
    return slice(even.start, even.stop, step) if places == list(even) else places
