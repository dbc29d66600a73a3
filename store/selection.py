"""From keywords to SQL conditions on runs, scores and curves."""

from collections.abc import Iterable, Mapping
from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.errors import StoreError, nearest
from store.filters import KINDS, Column, compile_filter, kind_column, value_kind
from store.options import flatten
from store.records import PHASES, STATUSES
from store.schema import CurveRow, RunRow, ScoreRow
from store.values import unwrap_numpy

MATCHED = ("study", "task", "arm", "status", "seed")
CHOICES = {"phase": PHASES, "status": STATUSES}

RUN_COLUMNS: dict[str, Column] = {
    name: RunRow.__table__.c[name]
    for name in (
        *("id", "study", "task", "arm", "phase", "seed", "status", "reason", "config_hash"),
        *("code_hash", "parameters", "steps", "attempt", "worker", "created_at", "started_at"),
        *("finished_at", "wall_seconds", "cpu_seconds", "peak_bytes", "optuna_study"),
        *("optuna_trial", "environment_id"),
    )
}
CONFIG: Column = RunRow.__table__.c["config"]
SCORE_COLUMNS: dict[str, Column] = {
    name: ScoreRow.__table__.c[name]
    for name in ("run_id", "split", "length", "metric", "bin", "n", "correct", "value")
}
CURVE_COLUMNS: dict[str, Column] = {
    name: CurveRow.__table__.c[name] for name in ("run_id", "step", "metric", "value")
}


def conditions(
    session: Session,
    extra: Mapping[str, Column],
    *,
    where: str | None,
    phase: object,
    match: Mapping[str, object],
) -> list[Column]:
    """Return the conditions that keywords state; `extra` are the columns beside those of a run.

    Raises:
        StoreError: If a keyword or a name in `where` is unknown, or a value cannot be matched.
    """
    found: list[Column] = []
    if phase not in (None, "all"):
        found.append(_matches(RUN_COLUMNS["phase"], "phase", phase))
    own = {name: column for name, column in extra.items() if name not in ("value", "run_id")}
    columns: dict[str, Column] = {name: RUN_COLUMNS[name] for name in MATCHED} | own
    for name, value in match.items():
        if name in KINDS:
            found.append(_matches(kind_column(CONFIG, name), name, value))
        elif name in columns:
            found.append(_matches(columns[name], name, value))
        else:
            known = {"where", "phase", *columns, *KINDS}
            raise StoreError(f"results cannot be chosen by {name!r}; {nearest(name, known)}")
    if where is not None:
        columns = RUN_COLUMNS | dict(extra)
        found.append(compile_filter(where, columns, CONFIG, lambda: known_keys(session)))
    return found


def known_keys(session: Session) -> dict[str, set[str]]:
    """Return the dotted config keys that any run has, each with the kinds of its values."""
    found: dict[str, set[str]] = {}
    seen: set[str] = set()
    for digest, config in session.execute(select(RunRow.config_hash, RunRow.config)):
        if digest not in seen:
            seen.add(digest)
            for key, value in flatten(config).items():
                found.setdefault(key, set()).add(value_kind(value))
    return found


def _matches(column: Column, name: str, value: object) -> Column:
    several = isinstance(value, list | tuple | set | frozenset | range)
    items = cast("Iterable[object]", value) if several else [value]
    values = [unwrap_numpy(each) for each in items]
    for each in values:
        choices = CHOICES.get(name)
        if choices is not None and each not in choices:
            raise StoreError(f"no {name} is named {each!r}; {nearest(str(each), choices)}")
        if each is not None and isinstance(each, str) is not (column.type.python_type is str):
            raise StoreError(f"{name} cannot be {each!r}")
        if not isinstance(each, str | int | None):
            raise StoreError(f"{name} cannot be {each!r}")
    given = [each for each in values if each is not None]
    among = column.in_(given)
    return among if None not in values else among | column.is_(None)
