"""What a selection finds: records one after the other, and the columns of their table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Select, exists, select
from sqlalchemy.orm import Session

from store.config_columns import KINDS, Column, in_run, key_value, kind_value
from store.errors import StoreError, nearest
from store.frames import columns_of
from store.reading import (
    curve_records,
    options_of,
    run_records,
    score_records,
    select_curves,
    select_runs,
    select_scores,
)
from store.records import Curve, Run, Score
from store.rows import CurveRow, RunRow, ScoreRow
from store.selection import CURVE_COLUMNS, RUN_COLUMNS, SCORE_COLUMNS, Selection, known_keys

# So many rows are in memory at once while they are read.
PAGE = 1000

T = TypeVar("T", Run, Score, Curve)


@dataclass(frozen=True)
class Order:
    """How rows are sorted and cut: by a column, descending after a `-`; None for no limit."""

    sort: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Found(Generic[T]):
    """The records that a selection finds, read as they are asked for."""

    kind: type[T]
    columns: list[str]
    records: Iterator[T]


def find_runs(session: Session, selection: Selection, order: Order) -> Found[Run]:
    """Find runs, by their ids unless an order is given."""
    query = select_runs().where(*selection.conditions(session))
    rows = _read(session, query, order, RUN_COLUMNS, (RunRow.id,))
    return Found(Run, columns_of(Run), run_records(session, rows))


def find_scores(session: Session, selection: Selection, order: Order) -> Found[Score]:
    """Find scores, by run and as written unless an order is given."""
    chosen = selection.conditions(session, SCORE_COLUMNS)
    known = {**RUN_COLUMNS, **SCORE_COLUMNS}
    rows = _read(session, select_scores().where(*chosen), order, known, (RunRow.id, ScoreRow.id))
    used = select(RunRow.config_id, RunRow.config_hash, RunRow.code_hash)
    if selection.is_about(SCORE_COLUMNS):
        used = used.join(ScoreRow, ScoreRow.run_id == RunRow.id)
    else:
        used = used.where(exists().where(ScoreRow.run_id == RunRow.id))
    options = options_of(session, session.execute(used.where(*chosen).distinct()))
    names = {name for one in options.values() for name in one}
    return Found(Score, columns_of(Score, names), score_records(rows, options))


def find_curves(session: Session, selection: Selection, order: Order) -> Found[Curve]:
    """Find points of curves, by run, metric and step unless an order is given."""
    query = select_curves().where(*selection.conditions(session, CURVE_COLUMNS))
    key = (CurveRow.run_id, CurveRow.metric, CurveRow.step)
    rows = _read(session, query, order, {**RUN_COLUMNS, **CURVE_COLUMNS}, key)
    return Found(Curve, columns_of(Curve), curve_records(rows))


FIND: Mapping[str, Callable[[Session, Selection, Order], Found[Any]]] = {
    "runs": find_runs,
    "scores": find_scores,
    "curves": find_curves,
}


def _read(
    session: Session,
    query: Select[*tuple[Any, ...]],
    order: Order,
    columns: Mapping[str, Column],
    key: tuple[Any, ...],
) -> Iterator[Sequence[Any]]:
    if order.limit is not None and order.limit < 0:
        raise StoreError(f"--limit must not be negative; got {order.limit}")
    if order.sort is not None:
        column = _column(session, order.sort.removeprefix("-"), columns)
        toward = column.desc() if order.sort.startswith("-") else column
        query = query.order_by(column.is_(None), toward)
    query = query.order_by(*key).limit(order.limit)
    yield from session.execute(query, execution_options={"yield_per": PAGE})


def _column(session: Session, name: str, columns: Mapping[str, Column]) -> Column:
    if name in columns:
        return columns[name]
    if name in KINDS:
        return in_run(kind_value(name))
    keys = known_keys(session)
    if name not in keys:
        known = {*columns, *KINDS, *keys}
        raise StoreError(f"there is no column {name!r} to sort by; {nearest(name, known)}")
    return in_run(key_value(name, 0 if keys[name] <= {"number", "null"} else ""))
