"""Rows as CSV, JSON, Markdown, Parquet or a table, written one after the other."""

import csv
import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from store.errors import StoreError, nearest
from store.fitting import fit, terminal_width
from store.printing import Rows, print_markdown, print_table, text

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
    with _replacing(Path(out)) as beside:
        if style == "parquet":
            from store.parquet import write_parquet

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


@contextmanager
def _replacing(path: Path) -> Generator[Path]:
    """A file beside, which takes the place of the path once it is whole."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield beside
        os.replace(beside, path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)


def _instant(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
