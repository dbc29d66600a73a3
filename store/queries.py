"""What a selection finds: records one after the other, and the columns of their table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from sqlalchemy import Select, exists, func, select
from sqlalchemy.orm import Session

from store.configs import leaves_of, varying
from store.database import rows_among
from store.encoding import record_of
from store.errors import StoreError, require_known
from store.models import ChoiceRow, ComponentRow, ConfigRow, CurveRow, RunRow, ScoreRow
from store.records import Best, Component, Curve, Run, Score, columns_of, row_of
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

AnySelect = Select[*tuple[Any, ...]]

# So many rows are in memory at once while they are read.
PAGE = 1000


@dataclass(frozen=True)
class Order:
    """How a table is sorted, cut and widened.

    Rows are sorted by a column, descending after a `-`; a limit of None is none. `extra` are
    columns beside the fields: kinds of part, dotted config keys, `superseded`; `options` asks for
    the config options that vary among runs, which scores have anyway.
    """

    sort: str | None = None
    limit: int | None = None
    extra: tuple[str, ...] = ()
    options: bool = False


@dataclass(frozen=True)
class Source:
    """Where records of one kind come from: a row of runs, with one of a table that is joined.

    `own` are the columns beside those of runs by which they are chosen, `key` is their order.
    """

    record: type[Any]
    columns: tuple[Any, ...]
    joined: type[ScoreRow] | type[CurveRow] | None
    own: Mapping[str, Column]
    key: tuple[Any, ...]

    def select(self, *columns: Any) -> AnySelect:
        """Return a query of these columns, over all records there are."""
        query = select(*columns).select_from(RunRow)
        joined = self.joined
        return query if joined is None else query.join(joined, joined.run_id == RunRow.id)

    def records(self) -> AnySelect:
        """Return a query of the columns of the records, then the ids of config and source."""
        return self.select(*self.columns, RunRow.config_id, RunRow.code_hash)


RUN_NAMES = tuple(each.name for each in fields(Run))
CONFIG_AT = RUN_NAMES.index("config")
RUNS = Source(
    Run,
    # The config is stored apart, and read once for all the runs that share it.
    tuple(RunRow.config_id if name == "config" else getattr(RunRow, name) for name in RUN_NAMES),
    None,
    {},
    (RunRow.id,),
)
SCORES = Source(
    Score,
    (
        *(RunRow.id, RunRow.study, RunRow.task, RunRow.arm, RunRow.phase, RunRow.seed),
        *(ScoreRow.split, ScoreRow.length, ScoreRow.metric, ScoreRow.bin, ScoreRow.n),
        *(ScoreRow.correct, ScoreRow.value, ScoreRow.status),
        func.coalesce(ScoreRow.created_at, RunRow.finished_at, type_=ScoreRow.created_at.type),
        *(ScoreRow.source, ScoreRow.shift, ScoreRow.imputed),
    ),
    ScoreRow,
    SCORE_COLUMNS,
    (RunRow.id, ScoreRow.id),
)
CURVES = Source(
    Curve,
    (CurveRow.run_id, CurveRow.step, CurveRow.metric, CurveRow.value),
    CurveRow,
    CURVE_COLUMNS,
    (CurveRow.run_id, CurveRow.metric, CurveRow.step),
)
SOURCES = {"runs": RUNS, "scores": SCORES, "curves": CURVES}

Options = Mapping[tuple[int, str | None], dict[str, Any]]


@dataclass(frozen=True)
class Found:
    """The records that a selection finds, read as they are asked for, and their table."""

    kind: type[Any]
    columns: list[str]
    pairs: Iterator[tuple[Any, Mapping[str, Any]]]

    def records(self) -> Iterator[Any]:
        """Read the records."""
        return (record for record, _ in self.pairs)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Read the rows of the table."""
        return ({**row_of(record, self.columns), **beside} for record, beside in self.pairs)


def find(session: Session, kind: str, selection: Selection, order: Order) -> Found:
    """Find "runs", "scores" or "curves", by their ids and as written unless an order is given."""
    source = SOURCES[kind]
    chosen = selection.conditions(session, source.own)
    vary = source is SCORES or (source is RUNS and order.options)
    options: Options = _options_of(session, source, selection, chosen) if vary else {}
    names = sorted({name for own in options.values() for name in own})
    extra = [name for name in order.extra if name not in names]
    query = source.records().where(*chosen).add_columns(*_extra(session, extra))
    query = _ordered(session, query, order, source)
    rows = session.execute(query, execution_options={"yield_per": PAGE})
    # Of a score the options are its own, a run has them as columns beside its own.
    fixed = columns_of(source.record, names if source is SCORES else ())
    columns = [*fixed, *(names if source is RUNS else ()), *extra]
    return Found(source.record, columns, _pairs(session, source, rows, options, extra))


def count_superseded(session: Session, kind: str, selection: Selection) -> int:
    """Count the superseded runs behind what a selection finds."""
    any_at_all = select(RunRow.id).where(SUPERSEDED.is_(True)).limit(1)
    if session.scalars(any_at_all).one_or_none() is None:
        return 0
    source = SOURCES[kind]
    query = source.select(func.count(RunRow.id.distinct())).where(SUPERSEDED.is_(True))
    return session.scalars(query.where(*selection.conditions(session, source.own))).one()


def _options_of(
    session: Session, source: Source, selection: Selection, chosen: Sequence[Column]
) -> Options:
    """Return the options that vary among the configs of what is chosen, by config and source hash.

    Where one config was run with several sources, the option `code_hash` tells them apart.
    """
    used = (RunRow.config_id, RunRow.config_hash, RunRow.code_hash)
    if source.joined is None or selection.is_about(source.own):
        query = source.select(*used)
    else:
        query = select(*used).where(exists().where(source.joined.run_id == RunRow.id))
    rows = session.execute(query.where(*chosen).distinct())
    found = [(config, key, code) for config, key, code in rows]
    varied = varying(leaves_of(session, {config for config, _, _ in found}))
    sources: dict[str, set[str | None]] = {}
    for _, key, code in found:
        sources.setdefault(key, set()).add(code)
    several = any(len(codes) > 1 for codes in sources.values())
    return {
        (config, code): varied[config] | ({"code_hash": code} if several else {})
        for config, _, code in found
    }


def _column(session: Session, name: str, own: Mapping[str, Column], purpose: str = "") -> Column:
    """Return what a column or an option is of the run that a row belongs to."""
    if name in own:
        return own[name]
    if name in KINDS:
        return in_run(kind_value(name))
    keys = known_keys(session)
    require_known(name, {*own, *KINDS, *keys}, f"there is no column {name!r}{purpose}")
    if not purpose:
        return in_run(whole_value(name))
    return in_run(key_value(name, 0 if keys[name] <= {"number", "null"} else ""))


def _extra(session: Session, names: Iterable[str]) -> list[Column]:
    own = {**RUN_COLUMNS, "superseded": SUPERSEDED}
    return [_column(session, name, own).label(f"extra_{at}") for at, name in enumerate(names)]


def _ordered(session: Session, query: AnySelect, order: Order, source: Source) -> AnySelect:
    if order.limit is not None and order.limit < 0:
        raise StoreError(f"--limit must not be negative; got {order.limit}")
    if order.sort is not None:
        own = {**RUN_COLUMNS, **source.own}
        column = _column(session, order.sort.removeprefix("-"), own, " to sort by")
        toward = column.desc() if order.sort.startswith("-") else column
        query = query.order_by(column.is_(None), toward)
    return query.order_by(*source.key).limit(order.limit)


def _pairs(
    session: Session,
    source: Source,
    rows: Iterable[Sequence[Any]],
    options: Options,
    extra: Sequence[str] = (),
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Return rows as records, each with the columns beside its own.

    Runs that share a config share the object.
    """
    width = len(source.columns)
    configs: dict[int, dict[str, Any]] = {}
    rest = iter(rows)
    while page := list(islice(rest, PAGE)):
        if source is RUNS:
            missing = {row[CONFIG_AT] for row in page} - configs.keys()
            query = select(ConfigRow.id, ConfigRow.config)
            found = rows_among(session, query, ConfigRow.id, missing)
            configs.update({number: config for number, config in found})
        for row in page:
            values: list[Any] = list(row[:width])
            own = options.get((row[width], row[width + 1]), {})
            beside = dict(zip(extra, row[width + 2 :], strict=True))
            if source is RUNS:
                values[CONFIG_AT] = configs[values[CONFIG_AT]]
                yield Run(*values), {**own, **beside}
            elif source is SCORES:
                yield Score(*values, options=own), beside
            else:
                yield source.record(*values), beside


def read_runs(session: Session, run_ids: Sequence[int]) -> list[Run]:
    """Return the runs of these ids, in the order of the ids."""
    return _read(session, RUNS, run_ids)


def read_scores(session: Session, run_ids: Sequence[int]) -> list[Score]:
    """Return the scores of the runs of these ids, in the order of the ids."""
    return _read(session, SCORES, run_ids)


def _read(session: Session, source: Source, run_ids: Sequence[int]) -> list[Any]:
    query = source.records().order_by(*source.key)
    rows = rows_among(session, query, RunRow.id, sorted(set(run_ids)))
    return [record for record, _ in _pairs(session, source, rows, {})]


def read_components(
    session: Session, code_hashes: Iterable[str]
) -> dict[str, tuple[Component, ...]]:
    """Return the parts that each `code_hash` of a run stands for, by kind and name."""
    found: dict[str, tuple[Component, ...]] = dict.fromkeys(code_hashes, ())
    query = select(ComponentRow).order_by(ComponentRow.kind, ComponentRow.name)
    for (row,) in rows_among(session, query, ComponentRow.code_hash, list(found)):
        found[row.code_hash] = (*found[row.code_hash], record_of(Component, row))
    return found


def find_best(session: Session, selection: Selection) -> list[Best]:
    """Return what tuning chose; see `Results.best`."""
    if "phase" in selection.match or selection.phase != "tune":
        raise StoreError("best is chosen among the tune runs, so it takes no phase")
    query = select(RunRow.id, RunRow.config_id).where(*selection.conditions(session))
    configs: dict[int, int] = {number: config for number, config in session.execute(query)}
    options = varying(leaves_of(session, set(configs.values())))
    choices = _choices(session, configs.keys(), selection.current)
    firsts = [choice.runs[0] for choice in choices if choice.runs]
    runs = {run.id: run for run in read_runs(session, firsts)}
    return [_best(choice, runs, options, configs) for choice in choices]


def _choices(session: Session, runs: Set[int], current: bool) -> list[ChoiceRow]:
    """Return the choices that rest on some of these runs, by study, task and arm.

    `current` leaves out those that rest on a superseded run, and of several all but the newest.
    """
    out_of_date = select(RunRow.id).where(RunRow.phase == "tune", SUPERSEDED.is_(True))
    excluded = set(session.scalars(out_of_date)) if current else set[int]()
    found: dict[tuple[Any, ...], ChoiceRow] = {}
    cell = (ChoiceRow.study, ChoiceRow.task, ChoiceRow.arm)
    for row in session.scalars(select(ChoiceRow).order_by(*cell, ChoiceRow.id)):
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
    runs: Mapping[int, Run],
    options: Mapping[int, dict[str, Any]],
    configs: Mapping[int, int],
) -> Best:
    run = runs.get(choice.runs[0]) if choice.runs else None
    return Best(
        *(choice.study, choice.task, choice.arm),
        run_id=run and run.id,
        nll=run and choice.nll,
        tried=len(choice.tried),
        config=run and run.config,
        seeds=len(choice.runs) if run else 0,
        at_edge=", ".join(f"{end} {name}" for name, end in choice.edges.items()) or None,
        search=choice.search,
        options=options.get(configs.get(run.id, 0), {}) if run else {},
    )
