"""What a selection finds: records one after the other, and the columns of their table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Select, exists, func, select
from sqlalchemy.orm import Session

from store.config_columns import KINDS, Column, in_run, key_value, kind_value, whole_value
from store.errors import StoreError, nearest
from store.frames import columns_of, row_of
from store.reading import (
    Options,
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
from store.selection import (
    CURVE_COLUMNS,
    RUN_COLUMNS,
    SCORE_COLUMNS,
    SUPERSEDED,
    Selection,
    known_keys,
)

# So many rows are in memory at once while they are read.
PAGE = 1000

T = TypeVar("T", Run, Score, Curve)


@dataclass(frozen=True)
class Order:
    """How a table is sorted, cut and widened.

    Rows are sorted by a column, descending after a `-`; a limit of None is none. `extra` are
    columns beside the fields: kinds of part, dotted config keys, `superseded`; `options` asks for
    the config options that vary among the rows.
    """

    sort: str | None = None
    limit: int | None = None
    extra: tuple[str, ...] = ()
    options: bool = False


@dataclass(frozen=True)
class Found(Generic[T]):
    """The records that a selection finds, read as they are asked for, and their table."""

    kind: type[T]
    columns: list[str]
    extra: tuple[str, ...]
    pairs: Iterator[tuple[T, Sequence[Any]]]

    def records(self) -> Iterator[T]:
        """Read the records."""
        return (record for record, _ in self.pairs)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Read the rows of the table."""
        for record, beside in self.pairs:
            yield row_of(record, self.columns) | dict(zip(self.extra, beside, strict=True))


def find_runs(session: Session, selection: Selection, order: Order) -> Found[Run]:
    """Find runs, by their ids unless an order is given."""
    chosen = selection.conditions(session)
    extra = order.extra
    if order.options:
        options = options_of(session, session.execute(_used().where(*chosen).distinct()))
        extra = tuple(dict.fromkeys([*extra, *_names(options)]))
    query = select_runs().where(*chosen).add_columns(*_extra(session, extra))
    rows = _read(session, query, order, RUN_COLUMNS, (RunRow.id,))
    columns = [*columns_of(Run), *extra]
    return Found(Run, columns, extra, run_records(session, rows))


def find_scores(session: Session, selection: Selection, order: Order) -> Found[Score]:
    """Find scores, by run and as written unless an order is given."""
    chosen = selection.conditions(session, SCORE_COLUMNS)
    used = _used()
    if selection.is_about(SCORE_COLUMNS):
        used = used.join(ScoreRow, ScoreRow.run_id == RunRow.id)
    else:
        used = used.where(exists().where(ScoreRow.run_id == RunRow.id))
    options = options_of(session, session.execute(used.where(*chosen).distinct()))
    names = _names(options)
    extra = tuple(name for name in order.extra if name not in names)
    query = select_scores().where(*chosen).add_columns(*_extra(session, extra))
    known = {**RUN_COLUMNS, **SCORE_COLUMNS}
    rows = _read(session, query, order, known, (RunRow.id, ScoreRow.id))
    columns = [*columns_of(Score, names), *extra]
    return Found(Score, columns, extra, score_records(rows, options))


def find_curves(session: Session, selection: Selection, order: Order) -> Found[Curve]:
    """Find points of curves, by run, metric and step unless an order is given."""
    chosen = selection.conditions(session, CURVE_COLUMNS)
    query = select_curves().where(*chosen).add_columns(*_extra(session, order.extra))
    key = (CurveRow.run_id, CurveRow.metric, CurveRow.step)
    rows = _read(session, query, order, {**RUN_COLUMNS, **CURVE_COLUMNS}, key)
    columns = [*columns_of(Curve), *order.extra]
    return Found(Curve, columns, order.extra, curve_records(rows))


def count_superseded(session: Session, kind: str, selection: Selection) -> int:
    """Count the superseded runs behind what a selection finds."""
    any_at_all = select(RunRow.id).where(SUPERSEDED.is_(True)).limit(1)
    if session.scalars(any_at_all).one_or_none() is None:
        return 0
    chosen = selection.conditions(session, BESIDE[kind])
    query = select(func.count(RunRow.id.distinct())).where(*chosen, SUPERSEDED.is_(True))
    if kind == "scores":
        query = query.join(ScoreRow, ScoreRow.run_id == RunRow.id)
    if kind == "curves":
        query = query.join(CurveRow, CurveRow.run_id == RunRow.id)
    return session.scalars(query).one()


def _used() -> Select[*tuple[Any, ...]]:
    return select(RunRow.config_id, RunRow.config_hash, RunRow.code_hash)


def _names(options: Options) -> list[str]:
    return sorted({name for one in options.values() for name in one})


def _extra(session: Session, names: Sequence[str]) -> list[Column]:
    """What each further column is of the run that a row belongs to."""
    own = {**RUN_COLUMNS, "superseded": SUPERSEDED}
    found: list[Column] = []
    for name in names:
        if name in own:
            found.append(own[name])
        elif name in KINDS:
            found.append(in_run(kind_value(name)))
        else:
            keys = known_keys(session)
            if name not in keys:
                known = {*own, *KINDS, *keys}
                raise StoreError(f"there is no column {name!r}; {nearest(name, known)}")
            found.append(in_run(whole_value(name)))
    return [column.label(f"extra_{at}") for at, column in enumerate(found)]


RECORDS: Mapping[str, type[Any]] = {"runs": Run, "scores": Score, "curves": Curve}
BESIDE: Mapping[str, Mapping[str, Column]] = {
    "runs": {},
    "scores": SCORE_COLUMNS,
    "curves": CURVE_COLUMNS,
}
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
