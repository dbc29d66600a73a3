"""The names that a mistyped one may have meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str], count: int = 1, cutoff: float = 0.5) -> list[str]:
    """At most so many of the known names, the likest first.

    Args:
        name: What came.
        known: What would be right.
        count: How many are told at most.
        cutoff: How alike they are at least, from 0 to 1.
    """
    return get_close_matches(name, sorted(known), n=count, cutoff=cutoff)
