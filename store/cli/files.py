"""The database as a file: its schema, SQL, copies, checks, and what is removed from it."""

import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from store.cli.options import (
    DEFAULT_STORAGE,
    PAGE,
    Arm,
    Format,
    Limit,
    Out,
    Overwrite,
    Storage,
    Study,
    Task,
    Where,
    app,
    guard,
)
from store.errors import StoreError
from store.output import Table, format_for, write

if TYPE_CHECKING:
    from store.where import Selection


FAILED = 1


@app.command()
def schema(style: Format = None, out: Out = None, overwrite: Overwrite = False) -> None:
    """Print every table, view and column, and what it means."""

    def work() -> None:
        from store.documented import COLUMNS, schema_rows

        rows = schema_rows()
        write(Table(COLUMNS, lambda: rows), format_for(style, out), out, overwrite)

    guard(work)


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="One statement, such as 'select * from results'.")],
    storage: Storage = DEFAULT_STORAGE,
    style: Format = None,
    limit: Limit = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Run one SQL statement; it can read only, for certain."""

    def work() -> None:
        from store.sql import read_sql

        wanted = format_for(style, out)
        paged = limit is None and wanted == "table" and out is None
        most = PAGE + 1 if paged else limit
        if most is not None and most < 0:
            raise StoreError(f"--limit must not be negative; got {most}")
        with read_sql(storage, query) as (columns, _):
            pass

        def rows() -> Iterator[Mapping[str, Any]]:
            with read_sql(storage, query) as (_, found):
                for row in islice(found, most):
                    yield dict(zip(columns, row, strict=True))

        page = list(rows()) if paged else []
        table = Table(columns, (lambda: page[:PAGE]) if paged else rows)
        write(table, wanted, out, overwrite)
        if len(page) > PAGE:
            print(f"the first {PAGE} rows; --limit N shows more", file=sys.stderr)

    guard(work)


@app.command()
def upgrade(storage: Storage = DEFAULT_STORAGE) -> None:
    """Bring an older database to this version; a copy is kept."""

    def work() -> None:
        from store.database import upgrade as upgrade_tables

        print(upgrade_tables(storage))

    guard(work)


@app.command()
def backup(
    target: Annotated[str, typer.Argument(help="A new file.")],
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Copy the database to a new file, while studies write on."""

    def work() -> None:
        from store.maintenance import backup as copy

        print(copy(storage, target))

    guard(work)


@app.command()
def check(storage: Storage = DEFAULT_STORAGE, style: Format = None) -> None:
    """Check pages, references, totals, hashes, Optuna's trials, files of weights.

    Nothing is changed. Exit code 1 when something is wrong.
    """

    def work() -> None:
        from store.maintenance import check as look

        problems, told = look(storage)
        rows = [vars(problem) for problem in problems]
        wanted = format_for(style, None)
        if rows or wanted != "table":
            write(Table(("check", "place", "problem"), lambda: rows), wanted, None)
        print(
            f"{told}; {len(rows) or 'no'} problem{'s' * (len(rows) != 1)}",
            file=sys.stderr if rows else sys.stdout,
        )
        if rows:
            raise typer.Exit(FAILED)

    guard(work)


@app.command()
def prune(
    storage: Storage = DEFAULT_STORAGE,
    study: Study = None,
    task: Task = None,
    arm: Arm = None,
    phase: Annotated[str | None, typer.Option(help="confirm, tune or all.")] = None,
    status: Annotated[str | None, typer.Option(help="Only runs that ended like this.")] = None,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Only runs that no last call asked for.")
    ] = False,
    where: Where = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, only say what.")] = False,
) -> None:
    """Remove runs and all that belongs to them alone.

    Says what it would remove; --yes removes it. Optuna's trials and the files of models stay.
    """

    def work() -> None:
        from store.where import Selection

        given = {"study": study, "task": task, "arm": arm, "status": status}
        match = {name: value for name, value in given.items() if value is not None}
        if not match and where is None and phase is None and not superseded:
            raise StoreError("prune needs to be told which runs: --study, --where, --superseded …")
        _prune(storage, Selection(where, phase or "all", False, match, superseded), yes)

    guard(work)


def _prune(storage: str, selection: "Selection", yes: bool) -> None:
    from store.maintenance import carry_out, preview

    found = carry_out(storage, selection) if yes else preview(storage, selection)
    if not found.runs:
        print("no run is of these; nothing is removed")
        return
    statuses = ", ".join(f"{count} {status}" for status, count in found.runs.items())
    told = "removed" if yes else "would be removed"
    count = sum(found.runs.values())
    print(f"{count} run{'s' * (count != 1)} ({statuses}) {told}, with:")
    print(f"  {found.scores} scores and {found.curves} points of curves")
    for path in found.models:
        print(f"  the note on a model, not its file: {path}")
    if found.trials:
        print(f"  not their {found.trials} trials in Optuna's tables, which optuna can delete")
    if not yes:
        print("--yes removes them")
