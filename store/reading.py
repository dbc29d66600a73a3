"""From rows to records."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from store.claims import chunks
from store.records import Run, Score
from store.schema import RunRow, ScoreRow
from store.writing import run_record

SCORE_COLUMNS = (
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
    ScoreRow.created_at,
    ScoreRow.source,
)


def select_scores() -> Select[*tuple[Any, ...]]:
    """Return a query of the columns of a Score, ordered by run and then as written."""
    query = select(*SCORE_COLUMNS).join(ScoreRow, ScoreRow.run_id == RunRow.id)
    return query.order_by(RunRow.id, ScoreRow.id)


def score_record(row: Iterable[Any], options: dict[str, Any] | None = None) -> Score:
    """Return one row of `select_scores` as a record."""
    return Score(*row, options=options or {})


def read_runs(session: Session, run_ids: Sequence[int]) -> list[Run]:
    """Return the runs of these ids, in the order of the ids."""
    found: list[Run] = []
    for part in chunks(sorted(set(run_ids))):
        query = select(RunRow).where(RunRow.id.in_(part)).order_by(RunRow.id)
        found.extend(run_record(row) for row in session.scalars(query))
    return found


def read_scores(session: Session, run_ids: Sequence[int]) -> list[Score]:
    """Return the scores of the runs of these ids, in the order of the ids."""
    found: list[Score] = []
    for part in chunks(sorted(set(run_ids))):
        query = select_scores().where(RunRow.id.in_(part))
        found.extend(score_record(row) for row in session.execute(query))
    return found
