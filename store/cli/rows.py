"""Rows as they are stored: runs, scores, curves; and all of them into a file."""

import sys
from itertools import chain, repeat
from typing import TYPE_CHECKING, Annotated, Any

import typer

from store.cli.options import (
    DEFAULT_STORAGE,
    PAGE,
    Format,
    Out,
    Overwrite,
    Query,
    Storage,
    command,
    query_command,
    results_of,
)
from store.errors import require_known
from store.output import Table, clip, format_for, print_json, print_table, short, telling, write

if TYPE_CHECKING:
    from store.queries import Found
    from store.records import Run
    from store.results import Results


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


@query_command()
def runs(query: Query) -> None:
    """Print the runs; csv and json hold every field."""
    _print_stream(query, "runs")


@query_command()
def scores(query: Query, group_by: GroupBy = None) -> None:
    """Print the scores, with the options that vary; or their means."""
    if group_by is None:
        _print_stream(query, "scores")
        return
    by = [name.strip() for name in group_by.split(",") if name.strip()]
    found = query.results.summary(by, **query.keywords())
    rows, always = found.rows(), ("mean", "low", "high", "seeds")
    full = {name for name in found.columns() if any(row[name] not in (None, 0) for row in rows)}
    query.show(
        rows, found.columns(), [name for name in found.columns() if name in {*full, *always}]
    )
    warn_of_mixtures(query, rows)


@query_command()
def curves(query: Query) -> None:
    """Print the points of training curves."""
    _print_stream(query, "curves")


@query_command()
def export(query: Query, kind: Kind) -> None:
    """Print all rows and columns, however many; csv by default."""
    require_known(kind, KINDS, f"{kind!r} cannot be exported")
    _print_stream(query, kind, "csv")


def _print_stream(query: Query, kind: str, otherwise: str = "table") -> None:
    from store.queries import SOURCES, Order
    from store.records import columns_of

    style = query.format(otherwise)
    page = query.limit
    if page is None and style == "table" and query.out is None:
        page = PAGE + 1
    own = columns_of(SOURCES[kind].record)
    extra = tuple(name for name in query.names() if name not in own)
    selection = query.selection()
    order = Order(query.sort, page, extra, query.only_changed)
    with query.results.stream(kind, selection, order) as find:
        found = find()
        if style == "table" or query.only_changed:
            _print_page(query, kind, style, found)
        else:
            # What was found can be read once; a second reading finds it again.
            founds = chain([found], (find() for _ in repeat(None)))
            table = Table(query.names() or found.columns, lambda: next(founds).rows())
            query.write(table, style)
    if style == "table" and not query.current:
        left = query.results.count_superseded(kind, selection)
        if left:
            print(
                f"{left} of these runs are superseded: the last call of their study did not ask "
                "for them; --current leaves them out",
                file=sys.stderr,
            )


def _print_page(query: Query, kind: str, style: str, found: "Found") -> None:
    rows, columns = list(found.rows()), found.columns
    more = query.limit is None and query.out is None and style == "table" and len(rows) > PAGE
    kept = rows[:PAGE] if more else rows
    wanted = query.names() or columns
    if not query.names() and kind == "runs" and style == "table":
        wanted = [*RUN_TABLE, *columns[columns.index("provenance") + 1 :]]
    if query.only_changed or (kind == "scores" and style == "table" and not query.names()):
        wanted = telling(kept, wanted)
    query.write(Table(wanted, lambda: kept), style)
    if more:
        print(
            f"the first {PAGE} rows; --limit N shows more, --out FILE writes all", file=sys.stderr
        )


def warn_of_mixtures(query: Query, rows: list[dict[str, Any]]) -> None:
    """Say on standard error which options, and which versions of the code, the rows mix."""
    parts = query.results.mixed_code(**query.keywords()) if rows else []
    if parts:
        named = ", ".join(parts[:FEW]) + (f" and {len(parts) - FEW} more" if parts[FEW:] else "")
        print(
            f"these runs were done with several versions of the code of {named}; "
            "`python -m store changed` tells which",
            file=sys.stderr,
        )
    mixed = sorted({name for row in rows if row["mixed"] for name in row["mixed"].split(", ")})
    if mixed:
        print(
            f"these means mix runs that differ in {', '.join(mixed)}; "
            "group by it, or choose with --where",
            file=sys.stderr,
        )


FEW = 3
"""Number of parts to name one by one."""

Number = Annotated[int, typer.Argument(help="The id of a run.")]


@command
def show(
    run: Number,
    storage: Storage = DEFAULT_STORAGE,
    style: Annotated[str, typer.Option("--format", help="table or json.")] = "table",
) -> None:
    """Print all there is about one run."""
    with results_of(storage) as results:
        require_known(style, ("table", "json"), f"show has no format {style!r}")
        report = _report(results, results.run(run))
        if style == "json":
            print_json([report])
        else:
            _print_report(report)


@command
def diff(
    first: Number,
    second: Number,
    storage: Storage = DEFAULT_STORAGE,
    style: Annotated[
        str | None, typer.Option("--format", help="table, csv, json or markdown.")
    ] = None,
) -> None:
    """Print in what two runs differ."""
    from store.maintenance import differences

    with results_of(storage) as results:
        found = differences(results, results.run(first), results.run(second))
    columns = ["part", "name", f"run {first}", f"run {second}"]
    wanted = format_for(style, None)
    rows = [dict(zip(columns, vars(one).values(), strict=True)) for one in found]
    if wanted == "table":
        rows = [{name: clip(value) for name, value in row.items()} for row in rows]
    if rows or wanted != "table":
        write(Table(columns, lambda: rows), wanted, None)
    else:
        print(f"runs {first} and {second} differ in nothing but their ids and times")


def _report(results: "Results", run: "Run") -> dict[str, Any]:
    from store.records import Records

    only = f"id == {run.id}"
    curves: dict[str, dict[str, Any]] = {}
    for point in results.curves(phase="all", where=only):
        curve = curves.setdefault(point.metric, {"points": 0, "first": point.value})
        curve["points"] += 1
        curve["last_step"], curve["last"] = point.step, point.value
    place = run.environment_id
    columns = ("split", "length", "metric", "bin", "n", "value")
    return {
        **Records([run], type(run)).rows()[0],
        "superseded": bool(results.runs(phase="all", where=f"{only} and superseded == True")),
        "source": [vars(part) for part in results.components(run.code_hash or "")],
        "environment": None if place is None else results.environment(place),
        "scores": [
            {name: row[name] for name in columns}
            for row in results.scores(phase="all", where=only).rows()
        ],
        "curves": [{"metric": metric, **curve} for metric, curve in curves.items()],
        "models": results.models(phase="all", where=only).rows(),
    }


def _print_report(report: dict[str, Any]) -> None:
    from store.configs import flatten

    mappings = ("config", "provenance", "environment")
    tables = ("source", "scores", "curves", "models")
    for name, value in report.items():
        if name not in (*mappings, *tables):
            print(f"{name}: {short(value)}")
    for part in mappings:
        print(f"\n{part}")
        for name, value in flatten(report[part] or {}).items():
            print(f"  {name}: {short(value)}")
    for part in tables:
        rows: list[dict[str, Any]] = report[part]
        print(f"\n{part}" if rows else f"\n{part}: none")
        if rows:
            print_table(rows, list(rows[0]))


@command
def studies(
    storage: Storage = DEFAULT_STORAGE,
    style: Format = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Print the studies, with their runs in each status."""
    from store.records import STATUSES

    with results_of(storage) as results:
        counts, none = results.counts(), dict.fromkeys(STATUSES, 0)
        # The first line of a description says the question.
        rows = [
            {
                **{"study": name, **none, **counts.get(name, {})},
                "description": text and text.strip().partition("\n")[0],
            }
            for name, text in results.studies().items()
        ]
    table = Table(["study", *STATUSES, "description"], lambda: rows)
    write(table, format_for(style, out), out, overwrite)
