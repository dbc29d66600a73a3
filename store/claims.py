"""What the ledger does inside one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

from sqlalchemy import Insert, Update, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from store.chunks import chunks
from store.configs import add_configs
from store.errors import StoreError, nearest
from store.records import FINISHED, STATUSES, Claim, Run
from store.rows import ComponentRow, CurveRow, ModelRow, RunRow, ScoreRow, StudyRow
from store.schema import Table, now
from store.writing import run_record

PLANNED_FACTS = ("config_id", "code_hash", "environment_id", "provenance")
RESULTS = (ScoreRow, CurveRow, ModelRow)


def add_missing(
    session: Session, table: type[Table], rows: Sequence[Mapping[str, Any]], *key: str
) -> None:
    """Insert the rows whose key is not there yet; others may be inserting the same."""
    dialect: Any = import_module(f"sqlalchemy.dialects.{session.get_bind().dialect.name}")
    statement: Insert = dialect.insert(table).on_conflict_do_nothing(index_elements=list(key))
    if rows:
        session.execute(statement, rows)


def check_finished(status: str) -> None:
    """Refuse a status in which a run is not over.

    Raises:
        StoreError: If it is planned, running or unknown.
    """
    if status not in FINISHED:
        raise StoreError(
            f"{status!r} is not a status of a finished run; {nearest(status, FINISHED)}"
        )


def owned(claim: Claim) -> Update:
    """Return an update that touches the claimed run only while the claim still owns it."""
    return update(RunRow).where(
        RunRow.id == claim.run.id,
        RunRow.status == "running",
        RunRow.worker == claim.worker,
        RunRow.attempt == claim.attempt,
        # A reset counts attempts anew, so the number alone may come back.
        RunRow.started_at == claim.run.started_at,
    )


def unclaimed(status: str) -> dict[str, Any]:
    """Return the columns of a run that no worker holds."""
    return {"status": status, "worker": None, "lease_until": None, "started_at": None}


def change(session: Session, statement: Update) -> bool:
    """Apply an update of one run; False when there was none to change."""
    statement = statement.returning(RunRow.id).execution_options(synchronize_session=False)
    return session.scalars(statement).one_or_none() is not None


def claim_first(
    session: Session, worker: str, run_ids: Sequence[int], lease: timedelta
) -> Claim | None:
    """Claim the planned run of lowest (priority, id)."""
    found = [_first_planned(session, part) for part in chunks(run_ids)]
    first = min((each for each in found if each is not None), default=None)
    if first is None:
        return None
    row = session.get_one(RunRow, first[1])
    row.status, row.attempt, row.worker = "running", row.attempt + 1, worker
    row.started_at = started = now()
    row.lease_until, row.finished_at = started + lease, None
    session.flush()
    return Claim(run_record(row), row.attempt, worker)


def plan_runs(
    session: Session,
    rows: Sequence[dict[str, Any]],
    parts: Sequence[dict[str, Any]],
    called_at: datetime | None,
) -> list[int]:
    """Add the runs that are new, with the parts behind them; return the ids of all.

    Runs that wait still are brought up to date with what the planner knows now.
    """
    placed: list[dict[str, Any]] = []
    for study in sorted({row["study"] for row in rows}):
        own = [dict(row) for row in rows if row["study"] == study]
        add_missing(session, StudyRow, [{"name": study, "created_at": now()}], "name")
        places = add_configs(session, study, [row.pop("config") for row in own])
        placed += [{**row, "config_id": place} for row, place in zip(own, places, strict=True)]
    add_missing(session, ComponentRow, parts, "code_hash", "kind", "name")
    # In the order given, which the ids then have.
    order = {row["identity"]: number for number, row in enumerate(rows)}
    placed.sort(key=lambda row: order[row["identity"]])
    there = _ids(session, order)
    # Those that are there are not tried: an attempt, even one in vain, uses up an id.
    add_missing(
        session, RunRow, [row for row in placed if row["identity"] not in there], "identity"
    )
    _bring_up_to_date(session, placed, called_at)
    ids = there | _ids(session, order.keys() - there.keys())
    return [ids[row["identity"]] for row in rows]


def _ids(session: Session, identities: Iterable[str]) -> dict[str, int]:
    ids: dict[str, int] = {}
    for part in chunks(identities):
        query = select(RunRow.identity, RunRow.id).where(RunRow.identity.in_(part))
        ids.update({identity: number for identity, number in session.execute(query)})
    return ids


def _bring_up_to_date(
    session: Session, rows: Sequence[dict[str, Any]], called_at: datetime | None
) -> None:
    if not rows:
        return
    table = RunRow.__table__.c
    own = update(RunRow).where(table.identity == bindparam("own"))
    facts = {name: bindparam(f"new_{name}", type_=table[name].type) for name in PLANNED_FACTS}
    known = [
        {"own": row["identity"], **{f"new_{name}": row[name] for name in PLANNED_FACTS}}
        for row in rows
    ]
    waiting = own.where(table.status == "planned").values(facts)
    session.connection().execute(waiting, known)
    if called_at is not None:
        asked = [{"own": row["identity"]} for row in rows]
        session.connection().execute(own.values(called_at=called_at, superseded=False), asked)
        _supersede(session, {(row["study"], row["task"], row["arm"]) for row in rows}, called_at)


def _supersede(
    session: Session, cells: Iterable[tuple[str, str, str]], called_at: datetime
) -> None:
    """Mark the runs of these arms that this call has not asked for."""
    for study, task, arm in sorted(cells):
        own = (RunRow.study == study, RunRow.task == task, RunRow.arm == arm)
        older = or_(RunRow.called_at.is_(None), RunRow.called_at < called_at)
        left = update(RunRow).where(*own, older, RunRow.superseded.is_(False))
        session.execute(left.values(superseded=True))


def write_results(
    session: Session,
    claim: Claim,
    values: dict[str, Any],
    rows: dict[type[Table], list[dict[str, Any]]],
) -> bool:
    """End a claimed run and replace its scores, curves and models; False when it was lost."""
    if not change(session, owned(claim).values(**values)):
        return False
    for table in RESULTS:
        session.execute(delete(table).where(table.run_id == claim.run.id))
        if rows[table]:
            # By the connection, as plain rows: a session would make objects of the ORM.
            session.connection().execute(insert(table), rows[table])
    return True


def running(session: Session, run_ids: Sequence[int]) -> list[tuple[Run, datetime]]:
    """Return the runs that a worker holds, each with the end of its lease."""
    found: list[tuple[Run, datetime]] = []
    for part in chunks(run_ids):
        query = select(RunRow).where(RunRow.id.in_(part), RunRow.status == "running")
        for row in session.scalars(query.order_by(RunRow.id)):
            assert row.lease_until is not None
            found.append((run_record(row), row.lease_until))
    return found


def take_back(session: Session, run: Run, until: datetime, max_attempts: int) -> bool:
    """Take a run from a worker that lost it; False when it was renewed or ended meanwhile."""
    held = owned(Claim(run, run.attempt, run.worker or "")).where(RunRow.lease_until == until)
    if run.attempt < max_attempts:
        return change(session, held.values(**unclaimed("planned")))
    reason = f"its worker was lost in each of {run.attempt} attempts, the last was {run.worker}"
    ended = {**unclaimed("failed"), "worker": run.worker, "started_at": run.started_at}
    return change(session, held.values(**ended, reason=reason, finished_at=now()))


def plan_anew(
    session: Session, run_ids: Sequence[int], statuses: Sequence[str]
) -> tuple[int, list[str]]:
    """Plan finished runs again and drop their results; return how many, and paths of weights."""
    found: list[int] = []
    paths: list[str] = []
    for part in chunks(run_ids):
        query = select(RunRow.id).where(RunRow.id.in_(part), RunRow.status.in_(statuses))
        found.extend(session.scalars(query.with_for_update()))
    fresh = {
        **unclaimed("planned"),
        **dict.fromkeys(("reason", "finished_at", "wall_seconds", "cpu_seconds", "peak_bytes")),
        "attempt": 0,
    }
    for part in chunks(found):
        paths += session.scalars(select(ModelRow.path).where(ModelRow.run_id.in_(part)))
        for table in RESULTS:
            session.execute(delete(table).where(table.run_id.in_(part)))
        session.execute(update(RunRow).where(RunRow.id.in_(part)).values(**fresh))
    return len(found), paths


def read_statuses(session: Session, run_ids: Iterable[int]) -> dict[int, str]:
    """Return the status of each run."""
    found: dict[int, str] = {}
    for part in chunks(run_ids):
        query = select(RunRow.id, RunRow.status).where(RunRow.id.in_(part))
        found.update({number: status for number, status in session.execute(query)})
    return found


def count_statuses(session: Session, run_ids: Iterable[int]) -> dict[str, int]:
    """Return how many of the runs are in each status, zeros too."""
    totals = dict.fromkeys(STATUSES, 0)
    for part in chunks(set(run_ids)):
        query = select(RunRow.status, func.count()).where(RunRow.id.in_(part))
        for status, count in session.execute(query.group_by(RunRow.status)):
            totals[status] += count
    return totals


def _first_planned(session: Session, run_ids: list[int]) -> tuple[int, int] | None:
    query = (
        select(RunRow.priority, RunRow.id)
        .where(RunRow.id.in_(run_ids), RunRow.status == "planned")
        .order_by(RunRow.priority, RunRow.id)
        .limit(1)
        # SQLite has no row locks; there the transaction has begun as a writer instead.
        .with_for_update(skip_locked=True)
    )
    row = session.execute(query).one_or_none()
    return None if row is None else (row[0], row[1])
