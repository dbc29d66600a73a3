"""From rows to records."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from store.chunks import chunks
from store.configs import leaves_of
from store.options import varying
from store.records import Component, Curve, Frozen, Run, Score
from store.rows import ComponentRow, ConfigRow, CurveRow, ProtocolRow, RunRow, ScoreRow

RUN_NAMES = tuple(each.name for each in fields(Run))
# The config is stored apart, and read once for all the runs that share it.
RUN_TABLE = tuple(
    RunRow.config_id if name == "config" else getattr(RunRow, name) for name in RUN_NAMES
)
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
)

Options = dict[tuple[int, str | None], dict[str, Any]]


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


def read_components(session: Session, code_hash: str) -> tuple[Component, ...]:
    """Return the parts that a run's `code_hash` stands for, by kind and name."""
    query = select(ComponentRow).where(ComponentRow.code_hash == code_hash)
    rows = session.scalars(query.order_by(ComponentRow.kind, ComponentRow.name))
    return tuple(Component(row.kind, row.name, row.origin, row.source_hash) for row in rows)


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
