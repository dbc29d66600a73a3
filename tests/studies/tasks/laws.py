"""What the sources say: every sequence of a task with its answers and its weight, in plain Python.

Written from the definitions, token by token, and from nothing else; weights need no normalizing.
"""

from collections.abc import Iterator
from itertools import pairwise, product

Example = tuple[tuple[int, ...], tuple[int, ...], float]
"""Tokens, targets (one a position, or the one answer), weight."""

NONE = -100


def even_pairs(length: int) -> Iterator[Example]:
    for row in product((1, 2), repeat=length):
        changes = [pair for pair in pairwise(row) if pair in ((1, 2), (2, 1))]
        yield (*row, 3), (len(changes) % 2,), 1


def parity(length: int) -> Iterator[Example]:
    for row in product((1, 2), repeat=length):
        yield (*row, 3), (row.count(2) % 2,), 1


def reverse(length: int) -> Iterator[Example]:
    for row in product((1, 2), repeat=length):
        yield appended(row, [row[length - i] - 1 for i in range(1, length + 1)], empty=3)


def bucket_sort(length: int) -> Iterator[Example]:
    for row in product(range(1, 6), repeat=length):
        answers = [symbol - 1 for symbol in range(1, 6) for _ in range(row.count(symbol))]
        yield appended(row, answers, empty=6)


def duplicate(length: int, alphabet: int = 2, times: int = 2) -> Iterator[Example]:
    for row in product(range(1, alphabet + 1), repeat=length):
        answers = [symbol - 1 for _ in range(times) for symbol in row]
        yield appended(row, answers, empty=alphabet + 1)


def odds_first(length: int) -> Iterator[Example]:
    for row in product((1, 2), repeat=length):
        odd = [row[i] - 1 for i in range(length) if i % 2 == 1]
        even = [row[i] - 1 for i in range(length) if i % 2 == 0]
        yield appended(row, odd + even, empty=3)


def missing_duplicate(length: int, alphabet: int = 2) -> Iterator[Example]:
    hidden, filler, empty = alphabet + 1, alphabet + 2, alphabet + 3
    half = length // 2
    for string in product(range(1, alphabet + 1), repeat=half):
        for place in range(2 * half):
            row = [*string, *string]
            answer, row[place] = row[place] - 1, hidden
            yield (*row, *[filler] * (length % 2), empty), (answer,), 1


def appended(row: tuple[int, ...], answers: list[int], empty: int) -> Example:
    return (*row, *[empty] * len(answers)), (*[NONE] * len(row), *answers), 1
