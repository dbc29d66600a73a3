"""The write side: which runs are planned, who does them, and what came out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Engine, Update, and_, delete, insert, or_, select, update
from sqlalchemy.orm import Session

from store.database import (
    chunks,
    create_tables,
    make_engine,
    opened,
    require_tables,
    rows_among,
    transaction,
)
from store.encoding import (
    choice_row,
    component_rows,
    curve_rows,
    fingerprint,
    model_row,
    optional_float,
    optional_int,
    plain_dict,
    planned_row,
    record_of,
    score_rows,
    storable_text,
)
from store.errors import StoreError, require_known
from store.models import (
    ChoiceRow,
    CurveRow,
    EnvironmentRow,
    ModelRow,
    PlanRow,
    ProtocolRow,
    RunRow,
    ScoreRow,
    StudyRow,
    Table,
    now,
)
from store.planning import (
    add_missing,
    add_study,
    known_runs,
    others_of_arms,
    plan_runs,
    set_superseded,
)
from store.queries import read_components, read_runs, read_scores, tuned_runs
from store.records import (
    FINISHED,
    MEASURED,
    STATUSES,
    Choice,
    Claim,
    Component,
    Frozen,
    Model,
    PlannedRun,
    Run,
    Score,
)
from store.weights import ModelFiles


class Ledger:
    """The runs of a database, for those that plan and do them.

    Each method is one short transaction, so many processes may share a database. A run is done by
    the worker that claims it, until its lease runs out; a result is written only by the claim that
    still owns the run.

    Raises:
        StoreError: If a value cannot be stored, or the database refuses; then nothing is written.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def close(self) -> None:
        """Close the connections. The ledger may be used again after it."""
        # The reader first: SQLite empties its log into the file as the last connection closes,
        # which one that may only read cannot do.
        if "_reader" in vars(self):
            self._reader.dispose()
        self._engine.dispose()

    @cached_property
    def _reader(self) -> Engine:
        """An engine that reads without a lock, so that it never waits for those who write."""
        if self._engine.dialect.name != "sqlite":
            return self._engine.execution_options(isolation_level="AUTOCOMMIT")
        url = self._engine.url.render_as_string(hide_password=False)
        return make_engine(url, readonly=True, snapshot=False)

    @classmethod
    def create(cls, url: str) -> "Ledger":
        """Open a database and make what is missing of it.

        Raises:
            StoreError: If it cannot be opened or created, is damaged, or is of another version.
        """
        create_tables(url)
        return cls.open(url)

    @classmethod
    def open(cls, url: str) -> "Ledger":
        """Open a database that holds our tables already; for workers.

        Raises:
            StoreError: If it is missing, cannot be opened, or is of another version.
        """
        # The reader refuses a missing file, where a writer would make an empty one, and it leaves
        # a file of another version as it is.
        opened(make_engine(url, readonly=True), require_tables).dispose()
        return cls(make_engine(url))

    def plan(self, runs: Iterable[PlannedRun]) -> list[int]:
        """Add the runs whose identity is new; return the ids of all, in the order given.

        Runs that are there and wait still take over the config, environment, provenance and
        `code_hash` given now, since it is now that they will be done; others keep theirs. Of all
        of them it is noted that the last call of their study asked for them; see `supersede`.
        Nothing is written where nothing is new.
        """
        planned = list(runs)
        rows = [planned_row(run) for run in planned]
        parts = [row for run in planned for row in component_rows(run)]
        identities = [row["identity"] for row in rows]
        with self._reading() as session:
            known = known_runs(session, identities)
        settled = [run for run in known.values() if run.status != "planned" and not run.superseded]
        if len(settled) == len(set(identities)):
            return [known[identity].id for identity in identities]
        with self._writing() as session:
            return plan_runs(session, rows, parts)

    def supersede(self, run_ids: Sequence[int]) -> None:
        """Note that these are all the runs that the last call asked for of their arms and tasks.

        The other runs of these arms on these tasks are superseded.
        """
        with self._reading() as session:
            others = others_of_arms(session, run_ids)
        if others:
            with self._writing() as session:
                set_superseded(session, others, True)

    def claim(
        self, worker: str, run_ids: Sequence[int], lease_seconds: float = 60.0
    ) -> Claim | None:
        """Give the worker the planned run of lowest (priority, id) among those named, or None.

        No other worker gets the same run while the lease of `lease_seconds` lasts.
        """
        with self._reading() as session:
            if _first_planned(session, run_ids) is None:
                return None
        with self._writing() as session:
            first = _first_planned(session, run_ids, lock=True)
            if first is None:
                return None
            row = session.get_one(RunRow, first)
            row.status, row.attempt, row.worker = "running", row.attempt + 1, worker
            row.started_at = started = now()
            row.lease_until, row.finished_at = started + timedelta(seconds=lease_seconds), None
            session.flush()
            return Claim(record_of(Run, row), row.attempt, worker)

    def renew(self, claim: Claim, lease_seconds: float = 60.0) -> bool:
        """Lengthen the lease to `lease_seconds` from now; False when the run was lost."""
        until = now() + timedelta(seconds=lease_seconds)
        return self._update(_owned(claim).values(lease_until=until))

    def release(self, claim: Claim) -> None:
        """Hand a run back undone; the attempt stays counted. A lost run is left alone."""
        self._update(_owned(claim).values(**_unclaimed("planned")))

    def attach_trial(self, claim: Claim, optuna_study: str, optuna_trial: int) -> bool:
        """Note which Optuna trial stands for this attempt; False when the run was lost."""
        values = {"optuna_study": optuna_study, "optuna_trial": optuna_trial}
        return self._update(_owned(claim).values(**values))

    def finish(
        self,
        claim: Claim,
        status: str,
        *,
        reason: str | None = None,
        scores: Iterable[object] = (),
        curves: Iterable[object] = (),
        wall_seconds: float | None = None,
        cpu_seconds: float | None = None,
        peak_bytes: int | None = None,
        parameters: int | None = None,
        provenance: Mapping[str, object] | None = None,
        model: Model | None = None,
    ) -> bool:
        """End a run and write all its results at once, in place of any older ones.

        Scores have split, length, metric, n, value and, where they apply, bin and correct; curve
        points have step, metric and value; both as mappings or dataclasses. `provenance` is added
        to what was planned; `model` says where its weights are. Returns False, and writes nothing,
        when the run was lost.
        """
        _check_finished(status)
        values = _ended(claim.run, status, reason)
        values["wall_seconds"] = optional_float(wall_seconds, "wall_seconds")
        values["cpu_seconds"] = optional_float(cpu_seconds, "cpu_seconds")
        values["peak_bytes"] = optional_int(peak_bytes, "peak_bytes")
        if parameters is not None:
            values["parameters"] = optional_int(parameters, "parameters")
        if provenance is not None:
            values["provenance"] = {**claim.run.provenance, **plain_dict(provenance, "provenance")}
        number, saved = claim.run.id, [] if model is None else [model]
        rows: dict[type[Table], list[dict[str, Any]]] = {
            ScoreRow: score_rows(number, scores),
            CurveRow: curve_rows(number, curves),
            ModelRow: [model_row(number, one.path, one.sha256, one.size_bytes) for one in saved],
        }
        with self._writing() as session:
            return _write_results(session, claim, values, rows)

    def recover(
        self, run_ids: Sequence[int], is_alive: Callable[[str], bool], max_attempts: int = 3
    ) -> list[Run]:
        """Take back the runs whose lease ran out or whose worker is not alive.

        They are planned again, or failed once `max_attempts` are used up. Returns them as they
        were while running, with the trial that Optuna still holds open.
        """
        with self._reading() as session:
            held = _running(session, run_ids)
        lost = [
            (run, until) for run, until in held if until <= now() or not is_alive(run.worker or "")
        ]
        if not lost:
            return []
        with self._writing() as session:
            return [run for run, until in lost if _take_back(session, run, until, max_attempts)]

    def reset(self, run_ids: Sequence[int], statuses: Sequence[str] = ("failed",)) -> int:
        """Plan finished runs anew, without their old results and weights; return how many.

        Raises:
            StoreError: If a status is not one of the finished ones.
        """
        for status in statuses:
            _check_finished(status)
        query = select(RunRow.id).where(RunRow.status.in_(statuses))
        with self._reading() as session:
            if not list(rows_among(session, query, RunRow.id, run_ids)):
                return 0
        with self._writing() as session:
            rows = rows_among(session, query.with_for_update(), RunRow.id, run_ids)
            found = [number for (number,) in rows]
            paths = list(rows_among(session, select(ModelRow.path), ModelRow.run_id, found))
            _plan_anew(session, found)
        for (path,) in paths:
            ModelFiles(self._engine.url).remove(path)
        return len(found)

    def counts(self, run_ids: Sequence[int]) -> dict[str, int]:
        """Return how many of the runs are in each status, zeros too."""
        found = list(self.statuses(run_ids).values())
        return {status: found.count(status) for status in STATUSES}

    def statuses(self, run_ids: Sequence[int]) -> dict[int, str]:
        """Return the status of each run; the cheap way to watch many."""
        query = select(RunRow.id, RunRow.status)
        with self._reading() as session:
            return {row[0]: row[1] for row in rows_among(session, query, RunRow.id, run_ids)}

    def runs(self, run_ids: Sequence[int]) -> list[Run]:
        """Return the runs, in the order of their ids."""
        with self._reading() as session:
            return read_runs(session, run_ids)

    def scores(self, run_ids: Sequence[int]) -> list[Score]:
        """Return the scores of the runs, in the order of the runs' ids."""
        with self._reading() as session:
            return read_scores(session, run_ids)

    def components(self, code_hashes: Iterable[str]) -> dict[str, tuple[Component, ...]]:
        """Return the parts that each `code_hash` of a run stands for; none where not noted."""
        with self._reading() as session:
            return read_components(session, code_hashes)

    def environment(self, facts: Mapping[str, object]) -> int:
        """Store facts about machine and packages, once; return their id."""
        kept = plain_dict(facts, "environment")
        row: dict[str, Any] = {"hash": fingerprint(kept), "facts": kept, "created_at": now()}
        query = select(EnvironmentRow.id).where(EnvironmentRow.hash == row["hash"])
        with self._reading() as session:
            known = session.scalars(query).one_or_none()
        if known is not None:
            return known
        with self._writing() as session:
            add_missing(session, EnvironmentRow, [row], "hash")
            return session.scalars(query).one()

    def describe_study(self, name: str, description: str) -> str | None:
        """Set the description of a study, new or not; return what it was, None if it had none."""
        with self._reading() as session:
            before = session.scalar(select(StudyRow.description).where(StudyRow.name == name))
        if before != description:
            with self._writing() as session:
                add_study(session, name)
                change = update(StudyRow).where(StudyRow.name == name)
                session.execute(change.values(description=description))
        return before

    def freeze(
        self, study: str, protocol: Mapping[str, object], run_ids: Sequence[int] | None = None
    ) -> Frozen:
        """Keep the plan of a study as it is now; one equal to a kept plan changes nothing.

        `runs_before` of the answer says whether a confirming run of the study had begun when this
        plan was first frozen; of `run_ids` alone, where these are the runs that it is about.
        """
        kept = plain_dict(protocol, "protocol")
        digest = fingerprint(kept)
        row: dict[str, Any] = {"study": study, "hash": digest, "protocol": kept}
        query = select(ProtocolRow).where(ProtocolRow.study == study, ProtocolRow.hash == digest)
        with self._writing() as session:
            add_study(session, study)
            row |= {"created_at": now(), "runs_before": _has_begun(session, study, run_ids)}
            add_missing(session, ProtocolRow, [row], "study", "hash")
            return record_of(Frozen, session.scalars(query).one())

    def keep_plan(self, study: str, plan: Mapping[str, object]) -> int:
        """Keep the resolved plan of a call, an equal one once, and note the call; return its id."""
        kept = plain_dict(plan, "plan")
        row = {"study": study, "hash": fingerprint(kept), "plan": kept, "created_at": now()}
        called = update(PlanRow).where(PlanRow.study == study, PlanRow.hash == row["hash"])
        with self._writing() as session:
            add_study(session, study)
            add_missing(session, PlanRow, [{**row, "called_at": now()}], "study", "hash")
            called = called.values(called_at=now()).execution_options(synchronize_session=False)
            return session.scalars(called.returning(PlanRow.id)).one()

    def choose(self, choice: Choice) -> Choice:
        """Keep what tuning chose; return what is kept, which is the first of the same search."""
        row = choice_row(choice)
        query = select(ChoiceRow).where(*(getattr(ChoiceRow, name) == row[name] for name in CHOSEN))
        with self._reading() as session:
            known = session.scalars(query).one_or_none()
            if known is not None:
                return record_of(Choice, known)
        with self._writing() as session:
            add_missing(session, ChoiceRow, [row], *CHOSEN)
            return record_of(Choice, session.scalars(query).one())

    def save_model(self, run_id: int, *, path: str, sha256: str, size_bytes: int) -> None:
        """Note where the weights of a run were saved, in place of an older note of that path.

        A run that is planned anew loses its models, as it does its results.

        Raises:
            StoreError: If there is no such run, or `sha256` is not 64 hexadecimal digits.
        """
        row = model_row(run_id, path, sha256, size_bytes)
        with self._writing() as session:
            _locked_status(session, run_id)
            same = (ModelRow.run_id == run_id, ModelRow.path == row["path"])
            session.execute(delete(ModelRow).where(*same))
            session.execute(insert(ModelRow), [row])

    def add_scores(
        self, run_id: int, scores: Iterable[object], *, source: str | None = None
    ) -> None:
        """Add scores to a run that is done or diverged, such as those of lengths evaluated later.

        Scores are given as to `finish`. One that is there already, of the same split, length,
        metric and bin, is replaced. `source` says what measured them.

        Raises:
            StoreError: If there is no such run, it is neither, or a value cannot be stored.
        """
        rows = score_rows(run_id, scores, source, now())
        with self._writing() as session:
            status = _locked_status(session, run_id)
            if status not in MEASURED:
                raise StoreError(
                    f"run {run_id} is {status}; scores are added to runs that are done or diverged"
                )
            for part in chunks(rows, len(SCORE_KEY)):
                same = or_(*(_is_score(row) for row in part))
                session.execute(delete(ScoreRow).where(ScoreRow.run_id == run_id, same))
            if rows:
                session.execute(insert(ScoreRow), rows)

    def _update(self, statement: Update) -> bool:
        with self._writing() as session:
            return _change(session, statement)

    def _reading(self) -> AbstractContextManager[Session]:
        return transaction(self._reader)

    def _writing(self) -> AbstractContextManager[Session]:
        return transaction(self._engine)


CHOSEN = ("study", "task", "arm", "search")
SCORE_KEY = ("split", "length", "metric", "bin", "shift")
RESULTS = (ScoreRow, CurveRow, ModelRow)


def _check_finished(status: str) -> None:
    require_known(status, FINISHED, f"{status!r} is not a status of a finished run")


def _first_planned(session: Session, run_ids: Sequence[int], lock: bool = False) -> int | None:
    """Return the planned run of lowest (priority, id)."""
    key = (RunRow.priority, RunRow.id)
    query = select(*key).where(RunRow.status == "planned").order_by(*key).limit(1)
    # SQLite has no row locks; there the transaction has begun as a writer instead.
    query = query.with_for_update(skip_locked=True) if lock else query
    found = [(row[0], row[1]) for row in rows_among(session, query, RunRow.id, run_ids)]
    return min(found)[1] if found else None


def _owned(claim: Claim) -> Update:
    """Return an update that touches the claimed run only while the claim still owns it."""
    return update(RunRow).where(
        RunRow.id == claim.run.id,
        RunRow.status == "running",
        RunRow.worker == claim.worker,
        RunRow.attempt == claim.attempt,
        # A reset counts attempts anew, so the number alone may come back.
        RunRow.started_at == claim.run.started_at,
    )


def _unclaimed(status: str) -> dict[str, Any]:
    """Return the columns of a run that no worker holds."""
    return {"status": status, "worker": None, "lease_until": None, "started_at": None}


def _ended(run: Run, status: str, reason: str | None) -> dict[str, Any]:
    """Return the columns of a run that is over; who did it and since when stays."""
    return {
        **_unclaimed(status),
        "worker": run.worker,
        "started_at": run.started_at,
        "finished_at": now(),
        "reason": None if reason is None else storable_text(reason),
    }


def _change(session: Session, statement: Update) -> bool:
    """Apply an update of one run; False when there was none to change."""
    statement = statement.returning(RunRow.id).execution_options(synchronize_session=False)
    return session.scalars(statement).one_or_none() is not None


def _write_results(
    session: Session,
    claim: Claim,
    values: Mapping[str, Any],
    rows: Mapping[type[Table], list[dict[str, Any]]],
) -> bool:
    """End a claimed run and replace its scores, curves and models; False when it was lost."""
    if not _change(session, _owned(claim).values(**values)):
        return False
    drop_results(session, [claim.run.id])
    for table, own in rows.items():
        if own:
            # By the connection, as plain rows: a session would make objects of the ORM.
            session.connection().execute(insert(table), own)
    return True


def drop_results(session: Session, run_ids: Iterable[int]) -> None:
    """Remove the scores, curves and models of runs."""
    for part in chunks(run_ids):
        for table in RESULTS:
            session.execute(delete(table).where(table.run_id.in_(part)))


def _running(session: Session, run_ids: Sequence[int]) -> list[tuple[Run, datetime]]:
    """Return the runs that a worker holds, each with the end of its lease."""
    query = select(RunRow).where(RunRow.status == "running").order_by(RunRow.id)
    rows = rows_among(session, query, RunRow.id, run_ids)
    return [(record_of(Run, row), row.lease_until) for (row,) in rows]


def _take_back(session: Session, run: Run, until: datetime, max_attempts: int) -> bool:
    """Take a run from a worker that lost it; False when it was renewed or ended meanwhile."""
    held = _owned(Claim(run, run.attempt, run.worker or "")).where(RunRow.lease_until == until)
    if run.attempt < max_attempts:
        return _change(session, held.values(**_unclaimed("planned")))
    reason = f"its worker was lost in each of {run.attempt} attempts, the last was {run.worker}"
    return _change(session, held.values(**_ended(run, "failed", reason)))


def _plan_anew(session: Session, run_ids: Sequence[int]) -> None:
    """Plan finished runs again, and drop their results and what was chosen by them."""
    none = ("reason", "finished_at", "wall_seconds", "cpu_seconds", "peak_bytes")
    fresh = {**_unclaimed("planned"), **dict.fromkeys(none), "attempt": 0}
    drop_results(session, run_ids)
    for part in chunks(run_ids):
        session.execute(update(RunRow).where(RunRow.id.in_(part)).values(**fresh))
    drop_choices(session, run_ids)


def drop_choices(session: Session, run_ids: Iterable[int]) -> None:
    """Forget what tuning chose by runs that are done again or gone."""
    lost = set(run_ids)
    rows = session.scalars(select(ChoiceRow)) if lost else ()
    for row in [row for row in rows if tuned_runs(row) & lost]:
        session.delete(row)


def _has_begun(session: Session, study: str, run_ids: Sequence[int] | None) -> bool:
    """Has a confirming run of the study begun, or one of these?"""
    begun = select(RunRow.id).where(
        RunRow.study == study,
        RunRow.phase == "confirm",
        or_(RunRow.status != "planned", RunRow.attempt > 0),
    )
    if run_ids is None:
        return session.scalars(begun.limit(1)).one_or_none() is not None
    return any(True for _ in rows_among(session, begun.limit(1), RunRow.id, run_ids))


def _is_score(row: Mapping[str, Any]) -> ColumnElement[bool]:
    """Return the condition that a score of the same run is of the same thing."""
    return and_(*(getattr(ScoreRow, name).is_not_distinct_from(row[name]) for name in SCORE_KEY))


def _locked_status(session: Session, run_id: int) -> str:
    """Return the status of a run, which stays as it is until the transaction ends."""
    query = select(RunRow.status).where(RunRow.id == run_id).with_for_update()
    status = session.scalars(query).one_or_none()
    if status is None:
        raise StoreError(f"no run has the id {run_id}")
    return status
