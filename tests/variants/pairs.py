"""Few combinations that hold every pair: what two choices do together shows, at a small price."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

Pair = tuple[int, Any, int, Any]


def every_pair(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows with one value of each axis, such that each pair of values stands in some row.

    >>> every_pair("ab", "xy", "12")
    [('a', 'x', '1'), ('a', 'y', '2'), ('b', 'x', '2'), ('b', 'y', '1')]
    """
    missing = {
        (one, left, other, right)
        for one, other in combinations(range(len(axes)), 2)
        for left, right in product(axes[one], axes[other])
    }
    longest = sorted(range(len(axes)), key=lambda axis: -len(axes[axis]))[:2]
    starts = [
        dict(zip(longest, values, strict=True))
        for values in product(*(axes[axis] for axis in longest))
    ]
    rows: list[tuple[Any, ...]] = []
    while missing:
        start = starts.pop(0) if starts else None
        if start is None:
            one, left, other, right = min(missing, key=repr)
            start = {one: left, other: right}
        row = _filled(start, axes, missing)
        missing -= _pairs_of(row)
        rows.append(row)
    return rows


def _filled(
    start: dict[int, Any], axes: Sequence[Sequence[Any]], missing: set[Pair]
) -> tuple[Any, ...]:
    """The row that starts so, with the values that add the most pairs."""
    chosen = dict(start)
    for axis in set(range(len(axes))) - set(start):

        def new(value: Any, axis: int = axis) -> int:
            known = [(other, chosen[other]) for other in sorted(chosen)]
            return sum(
                ((*known_one, axis, value) if known_one[0] < axis else (axis, value, *known_one))
                in missing
                for known_one in known
            )

        chosen[axis] = max(axes[axis], key=new)
    return tuple(chosen[axis] for axis in range(len(axes)))


def _pairs_of(row: tuple[Any, ...]) -> set[Pair]:
    return {(one, row[one], other, row[other]) for one, other in combinations(range(len(row)), 2)}
