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
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias
from unicodedata import combining, east_asian_width

from store.errors import StoreError, require_known
from store.files import replacing

FORMATS = ("table", "csv", "json", "markdown", "parquet")
SUFFIXES = {
    **{".csv": "csv", ".json": "json", ".md": "markdown", ".parquet": "parquet"},
    ".txt": "table",
}
IDENTIFYING = ("run_id", "id", "task", "arm", "length", "metric", "value", "mean")
NARROWEST = 12
BATCH = 10_000

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]


@dataclass(frozen=True)
class Table:
    """The rows of a table, which `rows` reads afresh at each call, and its columns."""

    columns: Sequence[str]
    rows: Callable[[], Iterable[Row]]


def format_for(style: str | None, out: str | None, otherwise: str = "table") -> str:
    """Return the format that was asked for: by name, or by the suffix of the file."""
    if style is None and out is not None:
        suffix = Path(out).suffix.lower()
        require_known(suffix, SUFFIXES, f"{out}: no format has the suffix {suffix!r}")
        return SUFFIXES[suffix]
    style = style or otherwise
    require_known(style, FORMATS, f"no format is named {style!r}")
    if style == "parquet" and out is None:
        raise StoreError("parquet is not for a terminal; name a file with --out")
    return style


def write(table: Table, style: str, out: str | None, overwrite: bool = False) -> int:
    """Write a table to a file, all of it or nothing, or to stdout; return how many rows.

    Raises:
        StoreError: If the file cannot be written, or is there and may not be overwritten.
    """
    count = 0

    def rows() -> Iterator[Row]:
        nonlocal count
        count = 0
        for row in table.rows():
            count += 1
            yield row

    counted = Table(table.columns, rows)
    if out is None:
        _write_text(counted, style, sys.stdout)
        return count
    if not overwrite and os.path.lexists(out):
        raise StoreError(f"{out} exists; name a new file, or replace it with --overwrite")
    with replacing(Path(out)) as beside:
        if style == "parquet":
            _write_parquet(counted, beside)
        else:
            with beside.open("w", encoding="utf-8", newline="") as file:
                _write_text(counted, style, file)
    return count


def _write_text(table: Table, style: str, to: Any) -> None:
    names = list(table.columns)
    if style == "json":
        _write_json(({name: row[name] for name in names} for row in table.rows()), to)
    elif style == "csv":
        writer = csv.writer(to, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([text(row[name]) for name in names] for row in table.rows())
    elif style == "markdown":
        print(f"| {' | '.join(names)} |\n| {' | '.join(['---'] * len(names))} |", file=to)
        for row in table.rows():
            cells = [short(row[name]).replace("|", "\\|") for name in names]
            print(f"| {' | '.join(cells)} |", file=to)
    else:
        _write_table(list(table.rows()), names, to)


def _write_table(rows: Rows, columns: Sequence[str], to: Any) -> None:
    left_out: list[str] = []
    if to is sys.stdout and sys.stdout.isatty():
        rows, columns, left_out = fit(rows, columns, shutil.get_terminal_size().columns)
    print_table(rows, columns, to)
    if left_out:
        print(
            f"columns hidden (terminal too narrow): {', '.join(left_out)}; "
            "use --columns or --format csv",
            file=sys.stderr,
        )


def _write_json(rows: Iterable[Row], to: Any) -> None:
    """Write one array of objects; what `json.dumps` would write, without all of it in memory."""
    first = True
    for row in rows:
        try:
            lines = _json(row)
        except (TypeError, ValueError) as error:
            raise StoreError(f"{_without_json(row)}; --format csv or table shows it") from error
        to.write("[\n" if first else ",\n")
        to.write("  " + lines.replace("\n", "\n  "))
        first = False
    to.write("[]\n" if first else "\n]\n")


def _without_json(row: Row) -> str:
    """Name the column of a row whose value JSON cannot hold, such as an infinity or bytes."""
    for name, value in row.items():
        try:
            _json(value)
        except (TypeError, ValueError):
            return f"column {name!r} holds {value!r:.60}, which has no form in JSON"
    return "a row has no form in JSON"


def print_json(value: object) -> None:
    """Print one JSON value."""
    print(_json(value))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=_instant)


def _instant(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def arrange(rows: Rows, columns: Sequence[str], sort: str | None, limit: int | None) -> list[Row]:
    """Sort rows by a column, descending after a `-`, missing values last; keep the first ones."""
    if limit is not None and limit < 0:
        raise StoreError(f"--limit must not be negative; got {limit}")
    found = list(rows)
    if sort is not None:
        name = sort.removeprefix("-")
        require_known(name, columns, f"there is no column {name!r} to sort by")
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
        seen: dict[Any, set[str]] = {}
        for row in rows:
            group = (row.get("task"), row.get("arm")) if "." in name else None
            seen.setdefault(group, set()).add(repr(row[name]))
        return any(len(values) > 1 for values in seen.values())

    return [name for name in columns if name in IDENTIFYING or tells(name)]


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


def clip(value: object, width: int = 60) -> object:
    """Return a value, or the beginning of its cell where that is long."""
    cell = short(value)
    return value if len(cell) <= width else f"{cell[: width - 1]}…"


def print_table(rows: Rows, columns: Sequence[str], to: Any = None) -> None:
    """Print a table that is as wide as its content: numbers to the right, text to the left."""
    words = _words(rows, columns)
    widths = _widths(rows, columns)

    def line(cells: Iterable[str]) -> str:
        padded: list[str] = []
        for name, cell in zip(columns, cells, strict=True):
            space = " " * (widths[name] - _cell_width(cell))
            padded.append(cell + space if name in words else space + cell)
        return "  ".join(padded).rstrip()

    to = to or sys.stdout
    print(line(columns), file=to)
    print("─" * _total(widths), file=to)
    for row in rows:
        print(line(short(row[name]) for name in columns), file=to)


def fit(rows: Rows, columns: Sequence[str], width: int) -> tuple[list[Row], list[str], list[str]]:
    """Shorten the longest texts, then leave out columns until a table fits.

    Mappings go first, of which a few letters tell nothing, then columns from the right.
    Returns its rows, its columns, and the columns that were left out.
    """
    shown = list(columns)
    nested = [name for name in columns if any(isinstance(row[name], dict) for row in rows)]
    widths = _shortened(rows, shown, width)
    while len(shown) > 1 and _total(widths) > width:
        shown.remove(nested.pop() if nested else shown[-1])
        widths = _shortened(rows, shown, width)
    words = _words(rows, shown)
    clipped: list[Row] = [
        {name: clip(row[name], widths[name]) if name in words else row[name] for name in shown}
        for row in rows
    ]
    return clipped, shown, [name for name in columns if name not in shown]


def _shortened(rows: Rows, columns: Sequence[str], width: int) -> dict[str, int]:
    """The width of each column, once the longest texts gave what they can."""
    widths, words = _widths(rows, columns), _words(rows, columns)
    while words and (excess := _total(widths) - width) > 0:
        spare = {name: widths[name] - max(NARROWEST, _cell_width(name)) for name in words}
        name = max(words, key=lambda each: (spare[each] > 0, widths[each]))
        if spare[name] <= 0:
            break
        widths[name] -= min(excess, spare[name])
    return widths


def _widths(rows: Rows, columns: Sequence[str]) -> dict[str, int]:
    return {
        name: max([_cell_width(name), *(_cell_width(short(row[name])) for row in rows)])
        for name in columns
    }


def _words(rows: Rows, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if not any(isinstance(row[name], int | float) for row in rows)]


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + 2 * max(len(widths) - 1, 0)


def _cell_width(cell: str) -> int:
    """How many columns of a terminal a text takes."""
    if cell.isascii():
        return len(cell)
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in cell)


def _write_parquet(table: Table, path: Path) -> None:
    """Write a table as a Parquet file, a batch of rows at a time.

    A column of whole numbers becomes int64, of numbers float64, of instants a UTC timestamp, of
    true and false bool; any other becomes text, JSON where a value has an inside.
    """
    try:
        pyarrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise StoreError(
            "parquet needs the Python package 'pyarrow': pip install encoder-sandbox[parquet]"
        ) from error
    types: dict[type, Any] = {
        **{bool: pyarrow.bool_(), int: pyarrow.int64(), float: pyarrow.float64()},
        **{datetime: pyarrow.timestamp("us", tz="UTC"), str: pyarrow.string()},
    }
    kinds = _kinds(table)
    schema: Any = pyarrow.schema([(name, types[kind]) for name, kind in kinds.items()])
    rest = iter(table.rows())
    with parquet.ParquetWriter(path, schema) as writer:
        while rows := list(islice(rest, BATCH)):
            columns = {name: [_as(row[name], kind) for row in rows] for name, kind in kinds.items()}
            writer.write_table(pyarrow.table(columns, schema=schema))


def _kinds(table: Table) -> dict[str, type]:
    """The type of each column: that of its values, text where they have none in common."""
    seen: dict[str, set[type]] = {name: set() for name in table.columns}
    for row in table.rows():
        for name, kinds in seen.items():
            if row[name] is not None:
                known = (bool, int, float, datetime)
                kinds.add(next((kind for kind in known if isinstance(row[name], kind)), str))
    alike = {name: {float} if kinds == {int, float} else kinds for name, kinds in seen.items()}
    return {name: next(iter(kinds)) if len(kinds) == 1 else str for name, kinds in alike.items()}


def _as(value: Any, kind: type) -> Any:
    if value is None or kind not in (str, float):
        return value
    return text(value) if kind is str else float(value)
