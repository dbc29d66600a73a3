"""What a selection finds: records one after the other, and the columns of their table."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from sqlalchemy import Select, exists, func, select
from sqlalchemy.orm import Session

from store.configs import leaves_of, varying
from store.database import chunks
from store.errors import StoreError, nearest
from store.models import ChoiceRow, ComponentRow, ConfigRow, CurveRow, ProtocolRow, RunRow, ScoreRow
from store.records import Best, Component, Curve, Frozen, Run, Score, columns_of, row_of
from store.where import (
    CURVE_COLUMNS,
    KINDS,
    RUN_COLUMNS,
    SCORE_COLUMNS,
    SUPERSEDED,
    Column,
    Selection,
    in_run,
    key_value,
    kind_value,
    known_keys,
    whole_value,
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


Options = dict[tuple[int, str | None], dict[str, Any]]


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


RUN_NAMES = tuple(each.name for each in fields(Run))
# The config is stored apart, and read once for all the runs that share it.
RUN_TABLE = tuple(
    RunRow.config_id if name == "config" else getattr(RunRow, name) for name in RUN_NAMES
)
CHOICE_CELL = (ChoiceRow.study, ChoiceRow.task, ChoiceRow.arm)
CONFIG_AT = RUN_NAMES.index("config")
SCORE_TABLE = (
    RunRow.id,
    RunRow.study,
    RunRow.task,
    RunRow.arm,
    RunRow.phase,
    RunRow.seed,
    ScoreRow.split,
    ScoreRow.length,
    ScoreRow.metric,
    ScoreRow.bin,
    ScoreRow.n,
    ScoreRow.correct,
    ScoreRow.value,
    ScoreRow.status,
    func.coalesce(ScoreRow.created_at, RunRow.finished_at, type_=ScoreRow.created_at.type),
    ScoreRow.source,
    ScoreRow.shift,
    ScoreRow.imputed,
)


def select_runs() -> Select[*tuple[Any, ...]]:
    """Return a query of the columns of a Run, with the id of its config."""
    return select(*RUN_TABLE)


def run_records(
    session: Session, rows: Iterable[Sequence[Any]]
) -> Iterator[tuple[Run, Sequence[Any]]]:
    """Return the rows of `select_runs` as records, each with the columns that were added to it.

    Runs that share a config share the object.
    """
    configs: dict[int, dict[str, Any]] = {}
    for part in _pages(rows):
        missing = {row[CONFIG_AT] for row in part} - configs.keys()
        for some in chunks(missing):
            query = select(ConfigRow.id, ConfigRow.config).where(ConfigRow.id.in_(some))
            configs.update({number: config for number, config in session.execute(query)})
        for row in part:
            values: list[Any] = list(row[: len(RUN_NAMES)])
            values[CONFIG_AT] = configs[values[CONFIG_AT]]
            yield Run(*values), row[len(RUN_NAMES) :]


def select_scores() -> Select[*tuple[Any, ...]]:
    """Return a query of the columns of a Score, then the ids of config and source."""
    table = select(*SCORE_TABLE, RunRow.config_id, RunRow.code_hash)
    return table.join(ScoreRow, ScoreRow.run_id == RunRow.id)


def score_records(
    rows: Iterable[Sequence[Any]], options: Options
) -> Iterator[tuple[Score, Sequence[Any]]]:
    """Return the rows of `select_scores` as records, each with the columns added to it."""
    none: dict[str, Any] = {}
    width = len(SCORE_TABLE)
    for row in rows:
        own = options.get((row[width], row[width + 1]), none)
        yield Score(*row[:width], options=own), row[width + 2 :]


def select_curves() -> Select[*tuple[Any, ...]]:
    """Return a query of the columns of a Curve."""
    query = select(CurveRow.run_id, CurveRow.step, CurveRow.metric, CurveRow.value)
    return query.join(RunRow, RunRow.id == CurveRow.run_id)


def curve_records(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Curve, Sequence[Any]]]:
    """Return the rows of `select_curves` as records, each with the columns added to it."""
    return ((Curve(*row[:4]), row[4:]) for row in rows)


def options_of(session: Session, used: Iterable[Sequence[Any]]) -> Options:
    """Return the options that vary among configs, each given by id, config hash and source hash.

    Where one config was run with several sources, the option `code_hash` tells them apart.
    """
    found: list[tuple[int, str, str | None]] = [(row[0], row[1], row[2]) for row in used]
    varied = varying(leaves_of(session, {number for number, _, _ in found}))
    sources: dict[str, set[str | None]] = {}
    for _, key, source in found:
        sources.setdefault(key, set()).add(source)
    told = any(len(several) > 1 for several in sources.values())
    return {
        (number, source): varied[number] | ({"code_hash": source} if told else {})
        for number, _, source in found
    }


def read_runs(session: Session, run_ids: Sequence[int]) -> list[Run]:
    """Return the runs of these ids, in the order of the ids."""
    found: list[Run] = []
    for part in chunks(sorted(set(run_ids))):
        query = select_runs().where(RunRow.id.in_(part)).order_by(RunRow.id)
        found.extend(run for run, _ in run_records(session, session.execute(query)))
    return found


def read_scores(session: Session, run_ids: Sequence[int]) -> list[Score]:
    """Return the scores of the runs of these ids, in the order of the ids."""
    found: list[Score] = []
    for part in chunks(sorted(set(run_ids))):
        query = select_scores().where(RunRow.id.in_(part)).order_by(RunRow.id, ScoreRow.id)
        found.extend(score for score, _ in score_records(session.execute(query), {}))
    return found


def read_components(
    session: Session, code_hashes: Iterable[str]
) -> dict[str, tuple[Component, ...]]:
    """Return the parts that each `code_hash` of a run stands for, by kind and name."""
    found: dict[str, tuple[Component, ...]] = dict.fromkeys(code_hashes, ())
    for part in chunks(list(found)):
        query = select(ComponentRow).where(ComponentRow.code_hash.in_(part))
        for row in session.scalars(query.order_by(ComponentRow.kind, ComponentRow.name)):
            own = Component(row.kind, row.name, row.origin, row.source_hash)
            found[row.code_hash] = (*found[row.code_hash], own)
    return found


def frozen_record(row: ProtocolRow) -> Frozen:
    """Return a protocol's row as a record."""
    return Frozen(row.study, row.hash, row.protocol, row.created_at, row.runs_before)


def _pages(rows: Iterable[Sequence[Any]], size: int = 500) -> Iterator[list[Sequence[Any]]]:
    page: list[Sequence[Any]] = []
    for row in rows:
        page.append(row)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page


def find_best(session: Session, selection: Selection) -> list[Best]:
    """Return what tuning chose; see `Results.best`."""
    if "phase" in selection.match or selection.phase != "tune":
        raise StoreError("best is chosen among the tune runs, so it takes no phase")
    chosen = selection.conditions(session)
    query = select(RunRow.id, RunRow.config_id).where(*chosen)
    configs: dict[int, int] = {number: config for number, config in session.execute(query)}
    options = varying(leaves_of(session, set(configs.values())))
    choices = _choices(session, configs.keys(), selection.current)
    firsts = read_runs(session, [choice.runs[0] for choice in choices if choice.runs])
    of_run = {run.id: run for run in firsts}
    return [
        _best(choice, of_run.get(next(iter(choice.runs), 0)), options, configs)
        for choice in choices
    ]


def _choices(session: Session, runs: Set[int], current: bool) -> list[ChoiceRow]:
    """Return the choices that rest on some of these runs, by study, task and arm.

    `current` leaves out those that rest on a superseded run, and of several all but the newest.
    """
    out_of_date = select(RunRow.id).where(RunRow.phase == "tune", SUPERSEDED.is_(True))
    excluded = set(session.scalars(out_of_date)) if current else set[int]()
    found: dict[tuple[Any, ...], ChoiceRow] = {}
    for row in session.scalars(select(ChoiceRow).order_by(*CHOICE_CELL, ChoiceRow.id)):
        tried = tuned_runs(row)
        if tried & runs and not tried & excluded:
            key = (row.study, row.task, row.arm, *(() if current else (row.search,)))
            found[key] = row
    return list(found.values())


def tuned_runs(choice: ChoiceRow) -> set[int]:
    """Return the ids of the runs that a choice rests on."""
    return {number for tried in choice.tried for number in tried["runs"]}


def _best(
    choice: ChoiceRow,
    run: Run | None,
    options: Mapping[int, dict[str, Any]],
    configs: Mapping[int, int],
) -> Best:
    cell, tried = (choice.study, choice.task, choice.arm), len(choice.tried)
    if run is None:
        return Best(*cell, None, None, tried, None)
    at_edge = ", ".join(f"{end} {name}" for name, end in choice.edges.items()) or None
    own = options.get(configs.get(run.id, 0), {})
    return Best(*cell, run.id, choice.nll, tried, run.config, len(choice.runs), at_edge, own)
