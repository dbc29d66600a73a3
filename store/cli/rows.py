"""Rows as they are stored: runs, scores, curves; and all of them into a file."""

import sys
from itertools import chain, repeat
from typing import TYPE_CHECKING, Annotated, Any

import typer

from store.cli.options import (
    DEFAULT_STORAGE,
    PAGE,
    Asked,
    Format,
    Out,
    Overwrite,
    Storage,
    app,
    asking,
    with_results,
)
from store.errors import StoreError, nearest
from store.output import Table, clip, format_for, print_json, print_table, short, telling, write

if TYPE_CHECKING:
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
    from store.queries import RECORDS, Order
    from store.records import columns_of

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


Number = Annotated[int, typer.Argument(help="The id of a run.")]


@app.command()
def show(
    run: Number,
    storage: Storage = DEFAULT_STORAGE,
    style: Annotated[str, typer.Option("--format", help="table or json.")] = "table",
) -> None:
    """Print all there is about one run."""

    def work(results: "Results") -> None:
        if style not in ("table", "json"):
            raise StoreError(f"show has no format {style!r}; {nearest(style, ('table', 'json'))}")
        report = _report(results, results.run(run))
        if style == "json":
            print_json([report])
        else:
            _print_report(report)

    with_results(storage, work)


@app.command()
def diff(
    first: Number,
    second: Number,
    storage: Storage = DEFAULT_STORAGE,
    style: Annotated[
        str | None, typer.Option("--format", help="table, csv, json or markdown.")
    ] = None,
) -> None:
    """Print in what two runs differ."""

    def work(results: "Results") -> None:
        from store.maintenance import differences

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

    with_results(storage, work)


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

    mappings, tables = (
        ("config", "provenance", "environment"),
        ("source", "scores", "curves", "models"),
    )
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


@app.command()
def studies(
    storage: Storage = DEFAULT_STORAGE,
    style: Format = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Print the studies, with their runs in each status."""

    def work(results: "Results") -> None:
        from store.records import STATUSES

        counts, none = results.counts(), dict.fromkeys(STATUSES, 0)
        rows = [
            {"study": name, **none, **counts.get(name, {}), "description": _first(description)}
            for name, description in results.studies().items()
        ]
        table = Table(["study", *STATUSES, "description"], lambda: rows)
        write(table, format_for(style, out), out, overwrite)

    with_results(storage, work)


def _first(text: str | None) -> str | None:
    """The first line of a description, which says the question."""
    return None if text is None else text.strip().partition("\n")[0]
