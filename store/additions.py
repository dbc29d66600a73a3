"""What is kept around runs: environments, studies, frozen protocols, models and later scores."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, delete, insert, or_, select, update
from sqlalchemy.orm import Session

from store.chunks import chunks
from store.claims import add_missing
from store.errors import StoreError
from store.reading import frozen_record
from store.records import Frozen
from store.rows import EnvironmentRow, ModelRow, ProtocolRow, RunRow, ScoreRow, StudyRow
from store.schema import now
from store.values import fingerprint

# A score is told from the others of its run by these.
SCORE_KEY = ("split", "length", "metric", "bin")


def add_environment(session: Session, facts: dict[str, Any]) -> int:
    """Store facts about machine and packages, once; return their id."""
    digest = fingerprint(facts)
    row = {"hash": digest, "facts": facts, "created_at": now()}
    add_missing(session, EnvironmentRow, [row], "hash")
    return session.scalars(select(EnvironmentRow.id).where(EnvironmentRow.hash == digest)).one()


def describe_study(session: Session, name: str, description: str) -> str | None:
    """Set the description of a study, new or not; return what it was, None if it had none."""
    add_missing(session, StudyRow, [{"name": name, "created_at": now()}], "name")
    before = session.scalar(select(StudyRow.description).where(StudyRow.name == name))
    change = update(StudyRow).where(StudyRow.name == name)
    session.execute(change.values(description=description))
    return before


def freeze_protocol(
    session: Session, study: str, protocol: dict[str, Any], run_ids: Sequence[int] | None
) -> Frozen:
    """Keep a protocol with the time of its freezing; an equal one keeps its first time."""
    add_missing(session, StudyRow, [{"name": study, "created_at": now()}], "name")
    row = {
        "study": study,
        "hash": fingerprint(protocol),
        "protocol": protocol,
        "created_at": now(),
        "runs_before": _has_begun(session, study, run_ids),
    }
    add_missing(session, ProtocolRow, [row], "study", "hash")
    query = select(ProtocolRow).where(ProtocolRow.study == study, ProtocolRow.hash == row["hash"])
    return frozen_record(session.scalars(query).one())


def add_model(session: Session, row: dict[str, Any]) -> None:
    """Note the saved weights of a run, in place of what was noted for the same path.

    Raises:
        StoreError: If there is no such run.
    """
    _status(session, row["run_id"])
    same = (ModelRow.run_id == row["run_id"], ModelRow.path == row["path"])
    session.execute(delete(ModelRow).where(*same))
    session.execute(insert(ModelRow), [row])


def add_later_scores(session: Session, run_id: int, rows: Sequence[dict[str, Any]]) -> None:
    """Add scores to a finished run, in place of those of the same split, length, metric and bin.

    Raises:
        StoreError: If there is no such run, or it is not done.
    """
    status = _status(session, run_id)
    if status != "done":
        raise StoreError(f"run {run_id} is {status}; scores are added to a run that is done")
    for part in chunks(rows, len(SCORE_KEY)):
        same = [
            and_(*(getattr(ScoreRow, name).is_not_distinct_from(row[name]) for name in SCORE_KEY))
            for row in part
        ]
        session.execute(delete(ScoreRow).where(ScoreRow.run_id == run_id, or_(*same)))
    if rows:
        session.execute(insert(ScoreRow), list(rows))


def _status(session: Session, run_id: int) -> str:
    """The status of a run, which stays as it is until the transaction ends."""
    query = select(RunRow.status).where(RunRow.id == run_id).with_for_update()
    status = session.scalars(query).one_or_none()
    if status is None:
        raise StoreError(f"no run has the id {run_id}")
    return status


def _has_begun(session: Session, study: str, run_ids: Sequence[int] | None) -> bool:
    begun = select(RunRow.id).where(
        RunRow.study == study,
        RunRow.phase == "confirm",
        or_(RunRow.status != "planned", RunRow.attempt > 0),
    )
    if run_ids is None:
        return session.scalars(begun.limit(1)).one_or_none() is not None
    among = (begun.where(RunRow.id.in_(part)).limit(1) for part in chunks(run_ids))
    return any(session.scalars(query).one_or_none() is not None for query in among)
