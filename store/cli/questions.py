"""Questions that every study is asked: how far, at what cost, what was chosen, what failed."""

from collections import Counter
from typing import Annotated, Any

import typer

from store.cli.options import Query, query_command
from store.cli.rows import warn_of_mixtures
from store.errors import StoreError, require_known
from store.output import telling

Metric = Annotated[str, typer.Option(help="accuracy, exact, skill, nll …")]
Split = Annotated[str, typer.Option(help="test, validation or train.")]
Below = Annotated[
    float | None, typer.Option(help="Print at which length each arm falls below this level.")
]
Length = Annotated[int | None, typer.Option(help="At this length; otherwise over all of them.")]
CELL = ("study", "task", "arm")


@query_command(current=True)
def lengths(
    query: Query, below: Below = None, metric: Metric = "accuracy", split: Split = "test"
) -> None:
    """Print each arm by length, or where it falls below a level."""
    asked = {"metric": metric, "split": split}
    if below is None:
        found: Any = query.results.summary(**asked, **query.keywords())
    else:
        found = query.results.below(below, **asked, **query.keywords())
    rows, columns = found.rows(), found.columns()
    _refuse_unknown(query, rows, **asked)
    if below is not None:
        query.show(rows, columns, [name for name in columns if name != "mixed"])
    elif query.format() == "table" and not query.names() and query.out is None:
        query.show(*_by_length(rows))
    else:
        query.show(rows, columns)
    warn_of_mixtures(query, rows)


@query_command(phase="tune", current=True)
def best(query: Query) -> None:
    """Print what tuning chose for each arm, among how many."""
    keywords = query.keywords()
    if keywords.pop("phase") != "tune":
        raise StoreError("best is chosen among the tune runs, so it takes no --phase")
    found = query.results.best(**keywords)
    rows, columns = found.rows(), found.columns()
    shown = _telling(rows, columns)
    # The search tells an arm's choices apart; where there is one it says nothing.
    times = Counter(tuple(row[name] for name in CELL) for row in rows)
    several = any(count > 1 for count in times.values())
    query.show(rows, columns, [name for name in shown if name != "search" or several])


@query_command(phase="all", current=True)
def failures(query: Query) -> None:
    """Print which runs diverged or failed, and why."""
    found = query.results.failures(**query.keywords())
    rows, columns = found.rows(), found.columns()
    query.show(rows, columns, _telling(rows, columns))


@query_command(current=True)
def cost(
    query: Query, metric: Metric = "accuracy", split: Split = "test", length: Length = None
) -> None:
    """Print what each arm costs beside what it reaches."""
    asked: dict[str, Any] = {"metric": metric, "split": split}
    asked |= {} if length is None else {"length": length}
    found = query.results.cost(**asked, **query.keywords())
    rows, columns = found.rows(), found.columns()
    _refuse_unknown(query, rows, **asked)
    query.show(rows, columns, [name for name in columns if name != "mixed"])
    warn_of_mixtures(query, rows)


@query_command(phase="all")
def changed(query: Query) -> None:
    """Print parts whose source has changed since their runs.

    Every file that a run's numbers rest on is among them. Docstrings and comments do not count.
    """
    found = query.results.changed(**query.keywords())
    columns = [*found.columns(), "first_run"]
    hidden = ("run_ids", "source_hash", "present_hash")
    rows = [{**row, "first_run": min(row["run_ids"])} for row in found.rows()]
    query.show(rows, columns, [name for name in columns if name not in hidden])


def _refuse_unknown(query: Query, rows: list[dict[str, Any]], **given: object) -> None:
    """Tell an empty answer to a question that was mistyped from one to which there is nothing."""
    for field, value in given.items() if not rows else ():
        known = query.results.names(field)
        if isinstance(value, str):
            require_known(value, known or {value}, f"no {field} is named {value!r}")
        elif known and value not in known:
            there = ", ".join(map(str, sorted(known)))
            raise StoreError(f"no score has the {field} {value}; there are {there}")


def _telling(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    """The fields, and the options that do not follow from task and arm."""
    told = telling(rows, columns)
    return [name for name in columns if name in told or ("." not in name and name != "config")]


def _by_length(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """One row for each arm, one column for each length, "mean ± half of the interval" in each."""
    columns = [*CELL, "seeds", *map(str, sorted({row["length"] for row in rows}))]
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in CELL)
        line = found.setdefault(
            key, {**dict.fromkeys(columns), **dict(zip(CELL, key, strict=True))}
        )
        line["seeds"] = max(line["seeds"] or 0, row["seeds"])
        line[str(row["length"])] = _cell(row)
    return list(found.values()), columns


def _cell(row: dict[str, Any]) -> str | None:
    if row["mean"] is None:
        return None
    half = "" if row["low"] is None else f"±{(row['high'] - row['low']) / 2:.3f}"
    return f"{row['mean']:.3f}{half}"
