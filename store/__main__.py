"""Print what a results database holds."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from store.errors import StoreError, nearest
from store.printing import arrange, print_json, print_rows, short, telling

if TYPE_CHECKING:
    from store.records import Run
    from store.results import Results

RUN_TABLE = (
    *("id", "study", "task", "arm", "phase", "seed", "status", "attempt"),
    *("parameters", "wall_seconds", "reason"),
)

Storage = Annotated[str, typer.Option(help="Database URL.")]
Study = Annotated[str | None, typer.Option(help="Only this study.")]
Task = Annotated[str | None, typer.Option(help="Only this task.")]
Arm = Annotated[str | None, typer.Option(help="Only this arm.")]
Phase = Annotated[str, typer.Option(help="confirm, tune or all.")]
Where = Annotated[
    str | None,
    typer.Option(
        help="A condition in Python's syntax, such as "
        '\'position in ("rope", "alibi") and training.learning_rate < 1e-3\'.'
    ),
]
Format = Annotated[str, typer.Option("--format", help="table, csv, json or markdown.")]
Sort = Annotated[str | None, typer.Option(help="Sort by a column; -COLUMN for descending.")]
Limit = Annotated[int | None, typer.Option(help="Print at most so many rows.")]

DEFAULT_STORAGE = "sqlite:///sandbox.db"

app = typer.Typer(
    help="Print what a results database holds.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
T = TypeVar("T")


@app.command()
def runs(
    storage: Storage = DEFAULT_STORAGE,
    study: Study = None,
    task: Task = None,
    arm: Arm = None,
    phase: Phase = "confirm",
    where: Where = None,
    style: Format = "table",
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Print the runs; csv and json hold every field."""

    def work(results: "Results") -> None:
        found = results.runs(where=where, phase=phase, **_chosen(results, study, task, arm))
        names = found.columns()
        rows = arrange(found.rows(), names, sort, limit)
        print_rows(rows, RUN_TABLE if style in ("table", "markdown") else names, style)

    _with_results(storage, work)


@app.command()
def scores(
    storage: Storage = DEFAULT_STORAGE,
    study: Study = None,
    task: Task = None,
    arm: Arm = None,
    phase: Phase = "confirm",
    where: Where = None,
    style: Format = "table",
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Print the scores, with the config options that vary among their runs."""

    def work(results: "Results") -> None:
        found = results.scores(where=where, phase=phase, **_chosen(results, study, task, arm))
        columns = found.columns()
        rows = arrange(found.rows(), columns, sort, limit)
        print_rows(rows, telling(rows, columns) if style == "table" else columns, style)

    _with_results(storage, work)


@app.command()
def studies(storage: Storage = DEFAULT_STORAGE, style: Format = "table") -> None:
    """Print the studies with the number of their runs in each status."""

    def work(results: "Results") -> None:
        from store.records import STATUSES

        counts, none = results.counts(), dict.fromkeys(STATUSES, 0)
        rows = [
            {"study": name, **none, **counts.get(name, {}), "description": _first(description)}
            for name, description in results.studies().items()
        ]
        print_rows(rows, ["study", *STATUSES, "description"], style)

    _with_results(storage, work)


@app.command()
def show(
    run: Annotated[int, typer.Argument(help="The id of a run.")],
    storage: Storage = DEFAULT_STORAGE,
    style: Annotated[str, typer.Option("--format", help="table or json.")] = "table",
) -> None:
    """Print one run: config, provenance, environment, scores and the ends of its curves."""

    def work(results: "Results") -> None:
        if style not in ("table", "json"):
            raise StoreError(f"show has no format {style!r}; {nearest(style, ('table', 'json'))}")
        report = _report(results, _find(results, run))
        if style == "json":
            print_json([report])
        else:
            _print_report(report)

    _with_results(storage, work)


@app.command()
def upgrade(storage: Storage = DEFAULT_STORAGE) -> None:
    """Bring an older database to the present version; a copy of the file is kept."""
    from store.versions import upgrade as upgrade_tables

    _guarded(lambda: print(upgrade_tables(storage)))


def _first(text: str | None) -> str | None:
    """The first line of a description, which says the question."""
    return None if text is None else text.strip().partition("\n")[0]


def _chosen(
    results: "Results", study: str | None, task: str | None, arm: str | None
) -> dict[str, Any]:
    """Return the names that were given, after a look at whether they exist."""
    given = {"study": study, "task": task, "arm": arm}
    wanted: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name, value in wanted.items():
        known = set(results.studies()) if name == "study" else results.names(name)
        if value not in known:
            raise StoreError(f"no {name} is named {value!r}; {nearest(str(value), known)}")
    return wanted


def _find(results: "Results", run_id: int) -> "Run":
    found = results.runs(phase="all", where=f"id == {run_id}")
    if not found:
        ids = results.names("id")
        known = f"the ids are {min(ids)} to {max(ids)}" if ids else "there are no runs"
        raise StoreError(f"no run has the id {run_id}; {known}")
    return found[0]


def _report(results: "Results", run: "Run") -> dict[str, Any]:
    from store.frames import Records

    only = f"id == {run.id}"
    curves: dict[str, dict[str, Any]] = {}
    for point in results.curves(phase="all", where=only):
        curve = curves.setdefault(point.metric, {"points": 0, "first": point.value})
        curve["points"] += 1
        curve["last_step"], curve["last"] = point.step, point.value
    place = run.environment_id
    fields = Records([run], type(run)).rows()[0]
    return {
        **fields,
        "environment": None if place is None else results.environment(place),
        "scores": [
            {name: row[name] for name in ("split", "length", "metric", "bin", "n", "value")}
            for row in results.scores(phase="all", where=only).rows()
        ],
        "curves": [{"metric": metric, **curve} for metric, curve in curves.items()],
    }


def _print_report(report: dict[str, Any]) -> None:
    from store.options import flatten

    parts = ("config", "provenance", "environment")
    for name, value in report.items():
        if name not in (*parts, "scores", "curves"):
            print(f"{name}: {short(value)}")
    for part in parts:
        print(f"\n{part}")
        for name, value in flatten(report[part] or {}).items():
            print(f"  {name}: {short(value)}")
    for part in ("scores", "curves"):
        rows: list[dict[str, Any]] = report[part]
        print(f"\n{part}" if rows else f"\n{part}: none")
        if rows:
            print_rows(rows, list(rows[0]), "table")


def _with_results(storage: str, work: Callable[["Results"], None]) -> None:
    def guarded() -> None:
        from store.results import Results

        results = Results(storage)
        try:
            work(results)
        finally:
            results.close()

    _guarded(guarded)


def _guarded(work: Callable[[], None]) -> None:
    try:
        work()
        sys.stdout.flush()
    except StoreError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    except BrokenPipeError as error:
        # The reader has left, as `| head` does; the interpreter would complain at its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from error


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line."""
    app(args=words, prog_name="python -m store")


if __name__ == "__main__":
    main()
