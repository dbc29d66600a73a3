"""Colours and line styles of arms: the same arm looks the same in every figure."""

from collections.abc import Iterable

# Okabe and Ito's colours, which people with any common colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", (0, (5, 2)), (0, (1, 1)))
INK, FAINT, SHADE = "#1f2430", "#8a8f9c", "#eceef2"


def looks(arms: Iterable[str]) -> dict[str, tuple[str, str | tuple[int, tuple[int, ...]]]]:
    """A colour and a dash for each arm, in their order; dashes change when colours run out."""
    return {
        arm: (COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)])
        for number, arm in enumerate(arms)
    }
