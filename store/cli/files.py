"""The database as a file: its schema, SQL, copies, checks, and what is removed from it."""

import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Any

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
    command,
)
from store.errors import StoreError
from store.output import Table, format_for, write

FAILED = 1


@command
def schema(style: Format = None, out: Out = None, overwrite: Overwrite = False) -> None:
    """Print every table, view and column, and what it means."""
    from store.models import SCHEMA_COLUMNS, schema_rows

    write(Table(SCHEMA_COLUMNS, schema_rows), format_for(style, out), out, overwrite)


@command
def sql(
    query: Annotated[str, typer.Argument(help="One statement, such as 'select * from results'.")],
    storage: Storage = DEFAULT_STORAGE,
    style: Format = None,
    limit: Limit = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Run one SQL statement; it can read only, for certain."""
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


@command
def upgrade(storage: Storage = DEFAULT_STORAGE) -> None:
    """Bring an older database to this version; a copy is kept."""
    from store import maintenance

    print(maintenance.upgrade(storage))


@command
def backup(
    target: Annotated[str, typer.Argument(help="A new file.")],
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Copy the database to a new file, while studies write on."""
    from store import maintenance

    print(maintenance.backup(storage, target))


@command
def check(storage: Storage = DEFAULT_STORAGE, style: Format = None) -> None:
    """Check pages, references, totals, hashes, Optuna's trials, files of weights.

    Nothing is changed. Exit code 1 when something is wrong.
    """
    from store import maintenance

    faults, looked_at = maintenance.check(storage)
    rows = [vars(fault) for fault in faults]
    wanted = format_for(style, None)
    if rows or wanted != "table":
        write(Table(("check", "place", "problem"), lambda: rows), wanted, None)
    print(
        f"{looked_at}; {len(rows) or 'no'} problem{'s' * (len(rows) != 1)}",
        file=sys.stderr if rows else sys.stdout,
    )
    if rows:
        raise typer.Exit(FAILED)


@command
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
    from store import maintenance
    from store.where import Selection

    given = {"study": study, "task": task, "arm": arm, "status": status}
    match = {name: value for name, value in given.items() if value is not None}
    if not match and where is None and phase is None and not superseded:
        raise StoreError("prune: select runs with --study, --where, --superseded …")
    selection = Selection(where, phase or "all", False, match, superseded)
    found = maintenance.prune(storage, selection, preview=not yes)
    if not found.runs:
        print("no runs match; nothing is removed")
        return
    statuses = ", ".join(f"{count} {status}" for status, count in found.runs.items())
    count = sum(found.runs.values())
    removed = "removed" if yes else "would be removed"
    print(f"{count} run{'s' * (count != 1)} ({statuses}) {removed}, with:")
    print(f"  {found.scores} scores and {found.curves} points of curves")
    for path in found.models:
        print(f"  the note on a model, not its file: {path}")
    if found.trials:
        print(f"  not their {found.trials} trials in Optuna's tables, which optuna can delete")
    if not yes:
        print("--yes removes them")
