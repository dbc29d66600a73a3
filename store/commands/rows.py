"""Rows as they are stored: runs, scores, curves; and all of them into a file."""

import sys
from itertools import chain, repeat
from typing import Annotated, Any

import typer

from store.commands.asked import PAGE, Asked, asking
from store.errors import StoreError, nearest
from store.printing import telling
from store.writers import Table

RUN_TABLE = (
    *("id", "study", "task", "arm", "phase", "seed", "status", "attempt"),
    *("parameters", "wall_seconds", "reason"),
)
KINDS = ("runs", "scores", "curves")

GroupBy = Annotated[
    str | None,
    typer.Option(help="Means over seeds for each value of these names, such as position,length."),
]
Kind = Annotated[str, typer.Argument(help="runs, scores or curves.")]


@asking()
def runs(asked: Asked) -> None:
    """Print the runs; csv and json hold every field."""
    _print_stream(asked, "runs")


@asking()
def scores(asked: Asked, group_by: GroupBy = None) -> None:
    """Print the scores, with the options that vary; or their means."""
    if group_by is None:
        _print_stream(asked, "scores")
        return
    by = [name.strip() for name in group_by.split(",") if name.strip()]
    chosen = asked.selection()
    found = asked.results.summary(
        by, where=chosen.where, phase=chosen.phase, current=chosen.current, **chosen.match
    )
    rows = found.rows()
    asked.show(rows, found.columns(), _without_empty(rows, found.columns()))
    warn_of_mixtures(rows)


@asking()
def curves(asked: Asked) -> None:
    """Print the points of training curves."""
    _print_stream(asked, "curves")


@asking()
def export(asked: Asked, kind: Kind) -> None:
    """Print all rows and columns, however many; csv by default."""
    if kind not in KINDS:
        raise StoreError(f"{kind!r} cannot be exported; {nearest(kind, KINDS)}")
    _print_stream(asked, kind, "csv")


def _print_stream(asked: Asked, kind: str, otherwise: str = "table") -> None:
    from store.frames import columns_of
    from store.queries import RECORDS, Order

    style = asked.format(otherwise)
    page = asked.limit
    if page is None and style == "table" and asked.out is None:
        page = PAGE + 1
    extra = tuple(name for name in asked.names() if name not in columns_of(RECORDS[kind]))
    order = Order(asked.sort, page, extra, asked.only_changed)
    selection = asked.selection()
    with asked.results.stream(kind, selection, order) as find:
        found = find()
        if style == "table" or asked.only_changed:
            _print_page(asked, kind, style, found.columns, list(found.rows()))
        else:
            # What was found can be read once; a second reading finds it again.
            founds = chain([found], (find() for _ in repeat(None)))
            table = Table(asked.names() or found.columns, lambda: next(founds).rows())
            asked.write(table, style)
    if style == "table":
        _note_superseded(asked, kind)


def _print_page(
    asked: Asked, kind: str, style: str, columns: list[str], rows: list[dict[str, Any]]
) -> None:
    more = asked.limit is None and asked.out is None and style == "table" and len(rows) > PAGE
    kept = rows[:PAGE] if more else rows
    wanted = asked.names() or (
        [*RUN_TABLE, *columns[columns.index("provenance") + 1 :]]
        if kind == "runs" and style == "table"
        else columns
    )
    if asked.only_changed or (kind == "scores" and style == "table" and not asked.names()):
        wanted = telling(kept, wanted)
    asked.write(Table(wanted, lambda: kept), style)
    if more:
        print(
            f"the first {PAGE} rows; --limit N shows more, --out FILE writes all", file=sys.stderr
        )


def _note_superseded(asked: Asked, kind: str) -> None:
    if asked.current:
        return
    left = asked.results.count_superseded(kind, asked.selection())
    if left:
        print(
            f"{left} of these runs are superseded: the last call of their study did not ask for "
            "them; --current leaves them out",
            file=sys.stderr,
        )


def _without_empty(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    always = ("mean", "low", "high", "seeds")
    return [
        name
        for name in columns
        if name in always or any(row[name] not in (None, 0) for row in rows)
    ]


def warn_of_mixtures(rows: list[dict[str, Any]]) -> None:
    """Say on standard error which options the printed means mix."""
    mixed = sorted({name for row in rows if row["mixed"] for name in row["mixed"].split(", ")})
    if mixed:
        print(
            f"these means mix runs that differ in {', '.join(mixed)}; "
            "group by it, or choose with --where",
            file=sys.stderr,
        )
