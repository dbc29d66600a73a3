"""From keywords to SQL conditions on runs, scores and curves."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.config_columns import KINDS, Column, config_is, kind_value
from store.errors import StoreError, nearest
from store.filters import compile_filter
from store.literals import value_kind
from store.records import PHASES, STATUSES
from store.rows import ConfigRow, CurveRow, RunRow, ScoreRow, StudyRow
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
SUPERSEDED: Column = RunRow.__table__.c["superseded"]
SCORE_COLUMNS: dict[str, Column] = {
    name: ScoreRow.__table__.c[name]
    for name in ("run_id", "split", "length", "metric", "bin", "n", "correct", "value")
}
CURVE_COLUMNS: dict[str, Column] = {
    name: CurveRow.__table__.c[name] for name in ("run_id", "step", "metric", "value")
}


@dataclass(frozen=True)
class Selection:
    """Which runs, or scores or curves of them, a query is about; see `store.Results`."""

    where: str | None = None
    phase: object = "confirm"
    current: bool = False
    match: Mapping[str, object] = field(default_factory=dict[str, object])
    superseded: bool = False

    def conditions(
        self, session: Session, extra: Mapping[str, Column] | None = None
    ) -> list[Column]:
        """Return the SQL conditions; `extra` are the columns beside those of a run.

        Raises:
            StoreError: If a keyword or a name in `where` is unknown, or a value cannot be matched.
        """
        beside = extra or {}
        found: list[Column] = []
        if self.phase not in (None, "all"):
            found.append(_matches(RUN_COLUMNS["phase"], "phase", self.phase))
        if self.current:
            found.append(SUPERSEDED.is_(False))
        if self.superseded:
            found.append(SUPERSEDED.is_(True))
        own = {name: column for name, column in beside.items() if name not in ("value", "run_id")}
        columns: dict[str, Column] = {name: RUN_COLUMNS[name] for name in MATCHED} | own
        for name, value in self.match.items():
            if name in KINDS:
                found.append(config_is(_matches(kind_value(name), name, value)))
            elif name in columns:
                found.append(_matches(columns[name], name, value))
            else:
                known = {"where", "phase", "current", *columns, *KINDS}
                raise StoreError(f"results cannot be chosen by {name!r}; {nearest(name, known)}")
        if self.where is not None:
            names = {**RUN_COLUMNS, "superseded": SUPERSEDED, **beside}
            found.append(compile_filter(self.where, names, lambda: known_keys(session)))
        return found

    def is_about(self, extra: Mapping[str, Column]) -> bool:
        """Does the choice rest on more than the runs: on columns of their scores or curves?"""
        return bool(set(self.match) & set(extra)) or self.where is not None


def known_keys(session: Session) -> dict[str, set[str]]:
    """Return the dotted config keys that any run has, each with the kinds of its values."""
    found: dict[str, set[str]] = {}
    shared = session.scalars(select(StudyRow.constants)).all()
    own = session.scalars(select(ConfigRow.options)).all()
    for options in (*shared, *own):
        for key, value in (options or {}).items():
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
    given: list[Any] = [each for each in values if each is not None]
    among = column.in_(given)
    return among if None not in values else among | column.is_(None)
