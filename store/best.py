"""What tuning chose."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.claims import chunks
from store.records import Best
from store.schema import RunRow, ScoreRow


def validation_losses(session: Session, run_ids: Iterable[int]) -> dict[int, float]:
    """Return the mean validation nll of each run where it is finite at every length."""
    values: dict[int, list[float | None]] = {}
    for part in chunks(run_ids):
        query = select(ScoreRow.run_id, ScoreRow.value).where(
            ScoreRow.run_id.in_(part),
            ScoreRow.split == "validation",
            ScoreRow.metric == "nll",
            ScoreRow.bin.is_(None),
        )
        for run_id, value in session.execute(query):
            values.setdefault(run_id, []).append(value)
    means: dict[int, float] = {}
    for run_id, found in values.items():
        finite = [value for value in found if value is not None]
        if len(finite) == len(found):
            means[run_id] = sum(finite) / len(finite)
    return means


def best_of(
    rows: list[RunRow], losses: Mapping[int, float], options: Mapping[int, dict[str, Any]]
) -> Best:
    """Return the run of lowest validation nll; of equals the earlier."""
    first = rows[0]
    tried = len({row.config_hash for row in rows})
    ranked = [row for row in rows if row.status == "done" and row.id in losses]
    if not ranked:
        return Best(first.study, first.task, first.arm, None, None, tried, None)
    won = min(ranked, key=lambda row: (losses[row.id], row.id))
    name = (won.study, won.task, won.arm)
    return Best(*name, won.id, losses[won.id], tried, won.config, options[won.id])
