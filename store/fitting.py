"""Tables that are wider than the terminal they are printed on."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from store.printing import Rows, cell_width, clip, short

NARROWEST = 12


def terminal_width() -> int | None:
    """How wide the terminal is that is printed to; None where it is a pipe or a file."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fit(
    rows: Rows, columns: Sequence[str], width: int
) -> tuple[list[Mapping[str, Any]], list[str], list[str]]:
    """Shorten the longest texts, then leave out columns until a table fits.

    Mappings go first, of which a few letters tell nothing, then columns from the right.
    Returns its rows, its columns, and the columns that were left out.
    """
    shown = list(columns)
    nested = [name for name in columns if any(isinstance(row[name], dict) for row in rows)]
    widths = _shortened(rows, shown, width)
    while nested and len(shown) > 1 and _total(widths, shown) > width:
        shown.remove(nested.pop())
        widths = _shortened(rows, shown, width)
    while len(shown) > 1 and _total(widths, shown) > width:
        shown.pop()
    words = _words(rows, shown)
    clipped: list[Mapping[str, Any]] = [
        {name: clip(row[name], widths[name]) if name in words else row[name] for name in shown}
        for row in rows
    ]
    return clipped, shown, [name for name in columns if name not in shown]


def _shortened(rows: Rows, columns: Sequence[str], width: int) -> dict[str, int]:
    """The width of each column, once the longest texts gave what they can."""
    least = {name: cell_width(name) for name in columns}
    widths = {
        name: max([least[name], *(cell_width(short(row[name])) for row in rows)])
        for name in columns
    }
    words = _words(rows, columns)
    while (excess := _total(widths, columns) - width) > 0:
        spare = {name: widths[name] - max(NARROWEST, least[name]) for name in words}
        name = max(words, key=lambda each: (spare[each] > 0, widths[each]), default=None)
        if name is None or spare[name] <= 0:
            break
        widths[name] -= min(excess, spare[name])
    return widths


def _words(rows: Rows, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if not any(isinstance(row[name], int | float) for row in rows)]


def _total(widths: Mapping[str, int], columns: Sequence[str]) -> int:
    return sum(widths[name] for name in columns) + 2 * max(len(columns) - 1, 0)
