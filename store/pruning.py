"""Remove runs, and what nothing refers to any more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table as SqlTable
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from store.chunks import chunks
from store.configs import recount
from store.connection import make_engine, transact
from store.errors import StoreError
from store.rows import (
    ComponentRow,
    ConfigRow,
    CurveRow,
    EnvironmentRow,
    ModelRow,
    RunRow,
    ScoreRow,
)
from store.selection import Selection
from store.versions import opened, require_tables


@dataclass(frozen=True)
class Pruned:
    """What is removed, or would be: runs by status, and the rows that belong to them."""

    runs: dict[str, int]
    scores: int
    curves: int
    models: list[str]
    trials: int


def preview(url: str, selection: Selection) -> Pruned:
    """Return what `carry_out` would remove; nothing is changed.

    Raises:
        StoreError: If one of the runs is running, or the database cannot be opened.
    """
    engine = opened(make_engine(url, readonly=True), require_tables)
    try:
        return transact(engine, lambda session: would_prune(session, selection)[1])
    finally:
        engine.dispose()


def carry_out(url: str, selection: Selection) -> Pruned:
    """Remove the runs that a selection names, and return what was removed; see `prune`.

    Raises:
        StoreError: As for `preview`.
    """
    opened(make_engine(url, readonly=True), require_tables).dispose()
    engine = make_engine(url)
    try:
        return transact(engine, lambda session: prune(session, selection))
    finally:
        engine.dispose()


def would_prune(session: Session, selection: Selection) -> tuple[list[int], Pruned]:
    """Return the runs that a selection names, and what would go with them.

    Raises:
        StoreError: If one of them is running.
    """
    chosen = selection.conditions(session)
    query = select(RunRow.id, RunRow.status, RunRow.optuna_trial).where(*chosen)
    rows = session.execute(query.order_by(RunRow.id)).all()
    held = [row[0] for row in rows if row[1] == "running"]
    if held:
        raise StoreError(
            f"run {held[0]} is running (and {len(held) - 1} more); choose others, "
            "or stop the study first"
        )
    ids = [row[0] for row in rows]
    statuses = [row[1] for row in rows]
    pruned = Pruned(
        runs={status: statuses.count(status) for status in dict.fromkeys(statuses)},
        scores=_count(session, ScoreRow, ids),
        curves=_count(session, CurveRow, ids),
        models=_models(session, ids),
        trials=sum(row[2] is not None for row in rows),
    )
    return ids, pruned


def prune(session: Session, selection: Selection) -> Pruned:
    """Remove the runs that a selection names, with their scores, curves and models.

    Configs, environments and notes on parts that no run needs any more go with them; files of
    models and Optuna's trials stay.

    Raises:
        StoreError: If one of the runs is running.
    """
    ids, pruned = would_prune(session, selection)
    for part in chunks(ids):
        for table in (ScoreRow, CurveRow, ModelRow):
            session.execute(delete(table).where(table.run_id.in_(part)))
        session.execute(delete(RunRow).where(RunRow.id.in_(part)))
    remove_unused(session)
    return pruned


def remove_unused(session: Session) -> None:
    """Remove configs, environments and notes on parts that no run needs."""
    unused = ConfigRow.id.not_in(select(RunRow.config_id))
    studies = session.scalars(select(ConfigRow.study).where(unused).distinct()).all()
    session.execute(delete(ConfigRow).where(unused))
    for study in studies:
        recount(session, study)
    environments = select(RunRow.environment_id).where(RunRow.environment_id.is_not(None))
    session.execute(delete(EnvironmentRow).where(EnvironmentRow.id.not_in(environments)))
    codes = select(RunRow.code_hash).where(RunRow.code_hash.is_not(None))
    session.execute(delete(ComponentRow).where(ComponentRow.code_hash.not_in(codes)))


def _count(session: Session, table: Any, ids: Sequence[int]) -> int:
    rows: SqlTable = table.__table__
    return sum(
        session.scalars(select(func.count()).select_from(rows).where(rows.c.run_id.in_(part))).one()
        for part in chunks(ids)
    )


def _models(session: Session, ids: Sequence[int]) -> list[str]:
    return [
        path
        for part in chunks(ids)
        for path in session.scalars(
            select(ModelRow.path).where(ModelRow.run_id.in_(part)).order_by(ModelRow.run_id)
        )
    ]
