"""Questions that every study is asked: how far, at what cost, what was chosen, what failed."""

from typing import Annotated, Any

import typer

from store.cli.options import Asked, asking
from store.cli.rows import warn_of_mixtures
from store.errors import StoreError, nearest
from store.output import telling

Metric = Annotated[str, typer.Option(help="accuracy, exact, skill, nll …")]
Split = Annotated[str, typer.Option(help="test, validation or train.")]
Below = Annotated[
    float | None, typer.Option(help="Print at which length each arm falls below this level.")
]
Length = Annotated[int | None, typer.Option(help="At this length; otherwise over all of them.")]
NAMES = ("study", "task", "arm")


@asking(current=True)
def lengths(
    asked: Asked, below: Below = None, metric: Metric = "accuracy", split: Split = "test"
) -> None:
    """Print each arm by length, or where it falls below a level."""
    chosen = _chosen(asked)
    if below is not None:
        found = asked.results.below(below, metric=metric, split=split, **chosen)
        rows, columns = found.rows(), found.columns()
        _refuse_unknown(asked, rows, metric=metric, split=split)
        asked.show(rows, columns, [name for name in columns if name != "mixed"])
    else:
        means = asked.results.summary(metric=metric, split=split, **chosen)
        rows, columns = means.rows(), means.columns()
        _refuse_unknown(asked, rows, metric=metric, split=split)
        if asked.format() == "table" and not asked.names() and asked.out is None:
            asked.show(*_by_length(rows))
        else:
            asked.show(rows, columns)
    warn_of_mixtures(rows)


@asking(phase="tune", current=True)
def best(asked: Asked) -> None:
    """Print what tuning chose for each arm, among how many."""
    chosen = _chosen(asked)
    if chosen.pop("phase") != "tune":
        raise StoreError("best is chosen among the tune runs, so it takes no --phase")
    found = asked.results.best(**chosen)
    columns = found.columns()
    asked.show(found.rows(), columns, _telling(found.rows(), columns))


@asking(phase="all", current=True)
def failures(asked: Asked) -> None:
    """Print which runs diverged or failed, and why."""
    found = asked.results.failures(**_chosen(asked))
    columns = found.columns()
    asked.show(found.rows(), columns, _telling(found.rows(), columns))


@asking(current=True)
def cost(
    asked: Asked, metric: Metric = "accuracy", split: Split = "test", length: Length = None
) -> None:
    """Print what each arm costs beside what it reaches."""
    match: dict[str, Any] = {} if length is None else {"length": length}
    found = asked.results.cost(metric=metric, split=split, **_chosen(asked), **match)
    rows, columns = found.rows(), found.columns()
    _refuse_unknown(asked, rows, metric=metric, split=split, **match)
    asked.show(rows, columns, [name for name in columns if name != "mixed"])
    warn_of_mixtures(rows)


@asking(phase="all")
def changed(asked: Asked) -> None:
    """Print parts whose source has changed since their runs.

    Every file that a run's numbers rest on is among them. Docstrings and comments do not count.
    """
    found = asked.results.changed(**_chosen(asked))
    columns = found.columns()
    hidden = ("run_ids", "source_hash", "present_hash")
    rows = [{**row, "first_run": min(row["run_ids"])} for row in found.rows()]
    shown = [*(name for name in columns if name not in hidden), "first_run"]
    asked.show(rows, [*columns, "first_run"], shown)


def _refuse_unknown(asked: Asked, rows: list[dict[str, Any]], **given: object) -> None:
    """Tell an empty answer to a question that was mistyped from one to which there is nothing."""
    for field, value in given.items() if not rows else ():
        known = asked.results.names(field)
        if known and value not in known:
            if not isinstance(value, str):
                there = ", ".join(map(str, sorted(known)))
                raise StoreError(f"no score has the {field} {value}; there are {there}")
            raise StoreError(f"no {field} is named {value!r}; {nearest(value, known)}")


def _chosen(asked: Asked) -> dict[str, Any]:
    chosen = asked.selection()
    common = {"where": chosen.where, "phase": chosen.phase, "current": chosen.current}
    return {**common, **chosen.match}


def _telling(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    """The fields, and the options that do not follow from task and arm."""
    told = telling(rows, columns)
    return [name for name in columns if name in told or ("." not in name and name != "config")]


def _by_length(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """One row for each arm, one column for each length, "mean ± half of the interval" in each."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    lengths = sorted({row["length"] for row in rows})
    for row in rows:
        key = tuple(row[name] for name in NAMES)
        line = found.setdefault(key, dict.fromkeys([*NAMES, "seeds", *map(str, lengths)]))
        line.update({name: row[name] for name in NAMES})
        line["seeds"] = max(line["seeds"] or 0, row["seeds"])
        line[str(row["length"])] = _cell(row)
    return list(found.values()), [*NAMES, "seeds", *map(str, lengths)]


def _cell(row: dict[str, Any]) -> str | None:
    if row["mean"] is None:
        return None
    if row["low"] is None:
        return f"{row['mean']:.3f}"
    return f"{row['mean']:.3f}±{(row['high'] - row['low']) / 2:.3f}"
