"""One run in full, and in what two differ."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from store.commands.app import DEFAULT_STORAGE, Storage, app, with_results
from store.errors import StoreError, nearest
from store.printing import clip, print_table, short
from store.writers import Table, format_for, print_json, write

if TYPE_CHECKING:
    from store.records import Run
    from store.results import Results

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
        from store.comparing import differences

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
    from store.frames import Records

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
    from store.options import flatten

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
