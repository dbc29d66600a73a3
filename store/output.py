"""Rows as CSV, JSON, Markdown, Parquet or a table, written one after the other."""

import csv
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias
from unicodedata import combining, east_asian_width

from store.errors import StoreError, nearest
from store.files import replacing

FORMATS = ("table", "csv", "json", "markdown", "parquet")
SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".parquet": "parquet",
    ".txt": "table",
}


@dataclass(frozen=True)
class Table:
    """The rows of a table, which `rows` reads afresh at each call, and its columns."""

    columns: Sequence[str]
    rows: Callable[[], Iterable[Mapping[str, Any]]]


def format_for(style: str | None, out: str | None, otherwise: str = "table") -> str:
    """Return the format that was asked for: by name, or by the suffix of the file.

    Raises:
        StoreError: If there is no such format, or the suffix tells none.
    """
    if style is None and out is not None:
        suffix = Path(out).suffix.lower()
        if suffix not in SUFFIXES:
            raise StoreError(
                f"{out}: no format has the suffix {suffix!r}; {nearest(suffix, SUFFIXES)}"
            )
        return SUFFIXES[suffix]
    style = style or otherwise
    if style not in FORMATS:
        raise StoreError(f"no format is named {style!r}; {nearest(style, FORMATS)}")
    if style == "parquet" and out is None:
        raise StoreError("parquet is not for a terminal; name a file with --out")
    return style


def write(table: Table, style: str, out: str | None, overwrite: bool = False) -> int:
    """Write a table to a file, all of it or nothing, or to stdout; return how many rows.

    Raises:
        StoreError: If the file cannot be written, or is there and may not be overwritten.
    """
    count = [0]

    def rows() -> Iterator[Mapping[str, Any]]:
        count[0] = 0
        for row in table.rows():
            count[0] += 1
            yield row

    counted = Table(table.columns, rows)
    if out is None:
        _write_text(counted, style, sys.stdout)
        return count[0]
    if not overwrite and os.path.lexists(out):
        raise StoreError(f"{out} exists; name a new file, or replace it with --overwrite")
    with replacing(Path(out)) as beside:
        if style == "parquet":
            write_parquet(counted, beside)
        else:
            with beside.open("w", encoding="utf-8", newline="") as file:
                _write_text(counted, style, file)
    return count[0]


def print_json(value: object) -> None:
    """Print one JSON value."""
    print(_json(value))


def _write_text(table: Table, style: str, to: Any) -> None:
    names = list(table.columns)
    if style == "json":
        _write_json(({name: row[name] for name in names} for row in table.rows()), to)
    elif style == "csv":
        writer = csv.writer(to, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([text(row[name]) for name in names] for row in table.rows())
    elif style == "markdown":
        print_markdown(table.rows(), names, to)
    else:
        _write_table(list(table.rows()), names, to)


Rows: TypeAlias = Sequence[Mapping[str, Any]]


def _write_table(rows: Rows, columns: Sequence[str], to: Any) -> None:
    width = terminal_width() if to is sys.stdout else None
    if width is None:
        print_table(rows, columns, to)
        return
    fitting, shown, left_out = fit(rows, columns, width)
    print_table(fitting, shown, to)
    if left_out:
        print(
            f"too wide for this terminal: {', '.join(left_out)}; --columns chooses, "
            "--format csv holds all",
            file=sys.stderr,
        )


def _write_json(rows: Iterable[Mapping[str, Any]], to: Any) -> None:
    """Write one array of objects; what `json.dumps` would write, without all of it in memory."""
    first = True
    for row in rows:
        try:
            told = _json(row)
        except (TypeError, ValueError) as error:
            raise StoreError(f"{_without_json(row)}; --format csv or table shows it") from error
        to.write("[\n" if first else ",\n")
        to.write("  " + told.replace("\n", "\n  "))
        first = False
    to.write("[]\n" if first else "\n]\n")


def _without_json(row: Mapping[str, Any]) -> str:
    """Name the column of a row whose value JSON cannot hold, such as an infinity or bytes."""
    for name, value in row.items():
        try:
            _json(value)
        except (TypeError, ValueError):
            return f"column {name!r} holds {value!r:.60}, which has no form in JSON"
    return "a row has no form in JSON"


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=_instant)


def _instant(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


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


BATCH = 10_000


def write_parquet(table: "Table", path: Path) -> None:
    """Write a table as a Parquet file, a batch of rows at a time.

    A column of whole numbers becomes int64, of numbers float64, of instants a UTC timestamp, of
    true and false bool; any other becomes text, JSON where a value has an inside.

    Raises:
        StoreError: If pyarrow is not installed.
    """
    try:
        pyarrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise StoreError(
            "parquet needs the Python package 'pyarrow': pip install encoder-sandbox[parquet]"
        ) from error
    kinds = _kinds(table.rows(), table.columns)
    types: dict[str, Any] = {
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "bool": pyarrow.bool_(),
        "instant": pyarrow.timestamp("us", tz="UTC"),
        "text": pyarrow.string(),
    }
    schema: Any = pyarrow.schema([(name, types[kind]) for name, kind in kinds.items()])
    with parquet.ParquetWriter(path, schema) as writer:
        for rows in _batches(table.rows()):
            columns = {
                name: [_cell(row[name], kind) for row in rows] for name, kind in kinds.items()
            }
            writer.write_table(pyarrow.table(columns, schema=schema))


def _kinds(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> dict[str, str]:
    seen: dict[str, set[str]] = {name: set() for name in columns}
    for row in rows:
        for name, kinds in seen.items():
            kinds.add(_kind(row[name]))
    return {name: _widest(kinds - {"none"}) for name, kinds in seen.items()}


def _kind(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    return "instant" if isinstance(value, datetime) else "text"


def _widest(kinds: set[str]) -> str:
    if kinds == {"int", "float"}:
        return "float"
    return kinds.pop() if len(kinds) == 1 else "text"


def _cell(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "text":
        return text(value)
    return float(value) if kind == "float" else value


def _batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    batch: list[Mapping[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    yield batch
