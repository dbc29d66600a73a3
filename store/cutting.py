"""Cut the scores of one config, gathered in arrays, into groups."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

Seeds = list[int]
Values = list[float | None]
Part = tuple[list[int], Seeds, Values]


def cut(
    arrays: Sequence[list[Any]], length_at: int, by_length: bool
) -> Iterator[tuple[tuple[Any, ...], Seeds, Values]]:
    """Cut the scores of one config into groups, with one value for each run.

    The arrays are the runs, unless by length, then seeds, values, and what tells groups apart, of
    which the length is at `length_at`.
    Without the length, the value of a run is its mean over lengths, None where one of them lacks:
    it would be the mean of the easier lengths.
    """
    runs, seeds, values, *keys = [arrays[0], *arrays] if by_length else arrays
    size = _repeat(runs, keys)
    parts: dict[tuple[Any, ...], Part] = {}
    for at, key in enumerate(zip(*(column[:size] for column in keys), strict=True)):
        of_run, of_seed, each = parts.setdefault(key, ([], [], []))
        of_run += () if by_length else runs[at::size]
        of_seed += seeds[at::size]
        each += values[at::size]
    if by_length:
        for key, (_, of_seed, each) in parts.items():
            yield key, of_seed, each
        return
    lengths: dict[tuple[Any, ...], list[Part]] = {}
    for key, part in parts.items():
        lengths.setdefault((*key[:length_at], None, *key[length_at + 1 :]), []).append(part)
    for key, own in lengths.items():
        yield key, *_means(own)


def _repeat(runs: Sequence[int], columns: Sequence[list[Any]]) -> int:
    """After how many scores the next run begins, where all were measured alike; else their number.

    Then a group is every so-manieth value, which is cut out at once.
    """
    size = next((at for at, run in enumerate(runs) if run != runs[0]), len(runs))
    times, rest = divmod(len(runs), size)
    alike = rest == 0 and all(column == column[:size] * times for column in columns)
    return size if alike else len(runs)


def _means(parts: Sequence[Part]) -> tuple[Seeds, Values]:
    """The mean value of each run over lengths, and its seed; a part is what one length has."""
    runs, seeds, _ = parts[0]
    if all(own == runs for own, _, _ in parts) and len(set(runs)) == len(runs):
        return seeds, [mean_of(each) for each in zip(*(own for _, _, own in parts), strict=True)]
    found: dict[int, tuple[int, list[float | None]]] = {}
    for of_run, of_seed, each in parts:
        for run, seed, value in zip(of_run, of_seed, each, strict=True):
            found.setdefault(run, (seed, []))[1].append(value)
    return [seed for seed, _ in found.values()], [mean_of(each) for _, each in found.values()]


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean of values; None where there is none, or one of them lacks."""
    if not values or None in values:
        return None
    whole = cast("Sequence[float]", values)
    return sum(whole) / len(whole)
