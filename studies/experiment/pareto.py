"""The Pareto front: what nothing else beats in every respect at once."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, TypeVar

Direction = Literal["maximize", "minimize"]
Name = TypeVar("Name", bound=Hashable)


def front(points: Mapping[Name, Sequence[float]], directions: Sequence[Direction]) -> list[Name]:
    """The names of the points that no other one dominates, the best of the first objective first.

    A point dominates another where it is at least as good in every objective and better in one; of
    points that are alike in all, all stay.

    >>> front({"a": (0.9, 5.0), "b": (0.8, 2.0), "c": (0.7, 3.0)}, ["maximize", "minimize"])
    ['a', 'b']

    Raises:
        ValueError: If a point has more or fewer values than there are directions.
    """
    for name, values in points.items():
        if len(values) != len(directions):
            raise ValueError(f"{name}: {len(directions)} objectives, but {len(values)} values")
    signs = [1 if one == "maximize" else -1 for one in directions]
    gains = {
        name: tuple(sign * value for sign, value in zip(signs, values, strict=True))
        for name, values in points.items()
    }
    kept = [one for one, gain in gains.items() if not any(_beats(o, gain) for o in gains.values())]
    return sorted(kept, key=lambda name: gains[name], reverse=True)


def _beats(other: Sequence[float], one: Sequence[float]) -> bool:
    at_least = all(a >= b for a, b in zip(other, one, strict=True))
    return at_least and tuple(other) != tuple(one)
