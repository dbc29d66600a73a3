"""How rows are printed: as a table for people, or as CSV, JSON or Markdown for programs."""

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from store.errors import StoreError, nearest

FORMATS = ("table", "csv", "json", "markdown")

Rows: TypeAlias = Sequence[Mapping[str, Any]]


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
        if name in ("run_id", "task", "arm", "length", "metric", "value"):
            return True
        seen: dict[Any, set[str]] = {}
        for row in rows:
            group = (row["task"], row["arm"]) if "." in name else None
            seen.setdefault(group, set()).add(repr(row[name]))
        return any(len(values) > 1 for values in seen.values())

    return [name for name in columns if tells(name)]


def print_rows(rows: Rows, columns: Sequence[str], style: str) -> None:
    """Print rows to stdout.

    Raises:
        StoreError: If the format is unknown.
    """
    if style not in FORMATS:
        raise StoreError(f"no format is named {style!r}; {nearest(style, FORMATS)}")
    if style == "json":
        print_json([{name: row[name] for name in columns} for row in rows])
    elif style == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([text(row[name]) for name in columns] for row in rows)
    elif style == "markdown":
        _print_markdown(rows, columns)
    else:
        _print_table(rows, columns)


def print_json(value: object) -> None:
    """Print one JSON value."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=_instant))


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
    """Return a value as a cell for reading: four digits, whole seconds, a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, float):
        return f"{value:.4g}"
    return " ".join(text(value).split())


def _print_markdown(rows: Rows, columns: Sequence[str]) -> None:
    lines = [list(columns), ["---"] * len(columns)]
    lines += [[short(row[name]).replace("|", "\\|") for name in columns] for row in rows]
    for cells in lines:
        print(f"| {' | '.join(cells)} |")


def _print_table(rows: Rows, columns: Sequence[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0))
    for name in columns:
        numeric = any(isinstance(row[name], int | float) for row in rows)
        table.add_column(Text(name), justify="right" if numeric else "left", no_wrap=True)
    for row in rows:
        # As Text, since square brackets in plain strings would be read as markup.
        table.add_row(*(Text(short(row[name])) for name in columns))
    console = Console(highlight=False)
    # As wide as its content: rich would cut or fold cells at the edge of the terminal.
    width = Measurement.get(console, console.options.update(max_width=10**6), table).maximum
    console = Console(highlight=False, width=max(width, 1))
    console.print(table)


def _instant(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
