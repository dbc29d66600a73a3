"""Lists that fit into one statement."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

# Databases limit the values in one statement; 999 is the smallest limit of a SQLite still met.
MOST_VALUES = 900

T = TypeVar("T")


def chunks(items: Iterable[T], values: int = 1) -> Iterator[list[T]]:
    """Cut items into lists that fit into one statement, at so many values an item."""
    rest = iter(items)
    while part := list(islice(rest, MOST_VALUES // values)):
        yield part
