"""How rows are printed for people: tables, Markdown, and short cells."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias
from unicodedata import combining, east_asian_width

from store.errors import StoreError, nearest

Rows: TypeAlias = Sequence[Mapping[str, Any]]
IDENTIFYING = ("run_id", "id", "task", "arm", "length", "metric", "value", "mean")


def arrange(
    rows: Rows, columns: Sequence[str], sort: str | None, limit: int | None
) -> list[Mapping[str, Any]]:
    """Sort rows by a column, descending after a `-`, missing values last; keep the first ones.

    Raises:
        StoreError: If there is no such column, its values have no order, or the limit is negative.
    """
    if limit is not None and limit < 0:
        raise StoreError(f"--limit must not be negative; got {limit}")
    found = list(rows)
    if sort is not None:
        name = sort.removeprefix("-")
        if name not in columns:
            raise StoreError(f"there is no column {name!r} to sort by; {nearest(name, columns)}")
        held = [row for row in found if row[name] is not None]
        try:
            held.sort(key=lambda row: row[name], reverse=sort.startswith("-"))
        except TypeError as error:
            raise StoreError(f"the column {name!r} has no order: {error}") from error
        found = held + [row for row in found if row[name] is None]
    return found[:limit]


def telling(rows: Rows, columns: Sequence[str]) -> list[str]:
    """The columns that tell a reader something that the task and the arm do not tell already.

    Columns of one value are left out, and so are options that follow from task and arm; CSV and
    JSON hold them all.
    """

    def tells(name: str) -> bool:
        if name in IDENTIFYING:
            return True
        seen: dict[Any, set[str]] = {}
        for row in rows:
            group = (row.get("task"), row.get("arm")) if "." in name else None
            seen.setdefault(group, set()).add(repr(row[name]))
        return any(len(values) > 1 for values in seen.values())

    return [name for name in columns if tells(name)]


def text(value: object) -> str:
    """Return a value as one cell: nothing for None, JSON for what has an inside."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | dict | bool):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def short(value: object) -> str:
    """Return a value as a cell for reading: four digits or a whole number, a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    return " ".join(text(value).split())


def print_markdown(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], to: Any) -> None:
    """Print a table in Markdown, row by row."""
    for cells in (list(columns), ["---"] * len(columns)):
        print(f"| {' | '.join(cells)} |", file=to)
    for row in rows:
        cells = [short(row[name]).replace("|", "\\|") for name in columns]
        print(f"| {' | '.join(cells)} |", file=to)


def print_table(rows: Rows, columns: Sequence[str], to: Any = None, rule: bool = True) -> None:
    """Print a table that is as wide as its content: numbers to the right, text to the left."""
    cells = [[short(row[name]) for name in columns] for row in rows]
    numeric = [any(isinstance(row[name], int | float) for row in rows) for name in columns]
    widths = [
        max(cell_width(name), *(cell_width(line[at]) for line in cells), 0)
        for at, name in enumerate(columns)
    ]
    print(_line(columns, widths, numeric), file=to or sys.stdout)
    if rule:
        print("─" * (sum(widths) + 2 * max(len(widths) - 1, 0)), file=to or sys.stdout)
    for line in cells:
        print(_line(line, widths, numeric), file=to or sys.stdout)


def clip(value: object, width: int = 60) -> object:
    """Return a value, or the beginning of its cell where that is long."""
    cell = short(value)
    return value if len(cell) <= width else f"{cell[: width - 1]}…"


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = [
        " " * (width - cell_width(cell)) + cell
        if right
        else cell + " " * (width - cell_width(cell))
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    ]
    return "  ".join(padded).rstrip()


def cell_width(cell: str) -> int:
    """How many columns of a terminal a text takes."""
    if cell.isascii():
        return len(cell)
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in cell)
