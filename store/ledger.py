"""The write side: which runs are planned, who does them, and what came out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

from sqlalchemy import (
    Engine,
    Insert,
    Update,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from store.configs import add_configs
from store.database import (
    chunks,
    create_tables,
    make_engine,
    opened,
    refuse_other_version,
    require_tables,
    transact,
)
from store.encoding import (
    choice_record,
    choice_row,
    component_rows,
    curve_rows,
    fingerprint,
    model_row,
    optional_float,
    optional_int,
    plain_dict,
    planned_row,
    run_record,
    score_rows,
    storable_text,
)
from store.errors import StoreError, nearest
from store.models import (
    ChoiceRow,
    ComponentRow,
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
from store.queries import frozen_record, read_components, read_runs, read_scores, tuned_runs
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

__all__ = ["Claim", "Ledger", "PlannedRun"]

T = TypeVar("T")


class Ledger:
    """The runs of a database, for those that plan and do them.

    Each method is one short transaction, so many processes may share a database. A run is done by
    the worker that claims it, until its lease runs out; a result is written only by the claim that
    still owns the run.
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
        refuse_other_version(url)
        return cls(opened(make_engine(url), create_tables))

    @classmethod
    def open(cls, url: str) -> "Ledger":
        """Open a database that holds our tables already; for workers.

        Raises:
            StoreError: If it is missing, cannot be opened, or is of another version.
        """
        # The reader refuses a missing file, where a writer would make an empty one, and it leaves
        # a file of another version as it is.
        opened(make_engine(url, readonly=True), require_tables).dispose()
        return cls(opened(make_engine(url), require_tables))

    def plan(self, runs: Iterable[PlannedRun]) -> list[int]:
        """Add the runs whose identity is new; return the ids of all, in the order given.

        Runs that are there and wait still take over the config, environment, provenance and
        `code_hash` given now, since it is now that they will be done; others keep theirs. Of all
        of them it is noted that the last call of their study asked for them; see `supersede`.
        Nothing is written where nothing is new.

        Raises:
            StoreError: If a value of a run cannot be stored; then no run is added.
        """
        planned = list(runs)
        rows = [planned_row(run) for run in planned]
        parts = [row for run in planned for row in component_rows(run)]
        identities = [row["identity"] for row in rows]
        known = self._read(lambda session: _known_runs(session, identities))
        settled = [run for run in known.values() if not _is_open(run) and not run.superseded]
        if len(settled) == len(set(identities)):
            return [known[identity].id for identity in identities]
        return self._transact(lambda session: _plan(session, rows, parts))

    def supersede(self, run_ids: Sequence[int]) -> None:
        """Note that these are all the runs that the last call asked for of their arms and tasks.

        The other runs of these arms on these tasks are superseded.
        """
        others = self._read(lambda session: _others_of_arms(session, run_ids))
        if others:
            self._transact(lambda session: _set_superseded(session, others, True))

    def claim(
        self, worker: str, run_ids: Sequence[int], lease_seconds: float = 60.0
    ) -> Claim | None:
        """Give the worker the planned run of lowest (priority, id) among those named, or None.

        No other worker gets the same run while the lease of `lease_seconds` lasts.
        """
        if self._read(lambda session: _first_planned(session, run_ids, lock=False)) is None:
            return None
        lease = timedelta(seconds=lease_seconds)
        return self._transact(lambda session: _claim(session, worker, run_ids, lease))

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

        Raises:
            StoreError: If the status is not one of the finished ones or a value cannot be stored.
        """
        check_finished(status)
        values: dict[str, Any] = {
            **_unclaimed(status),
            "worker": claim.worker,
            "started_at": claim.run.started_at,
            "finished_at": now(),
            "reason": None if reason is None else storable_text(reason),
            "wall_seconds": optional_float(wall_seconds, "wall_seconds"),
            "cpu_seconds": optional_float(cpu_seconds, "cpu_seconds"),
            "peak_bytes": optional_int(peak_bytes, "peak_bytes"),
        }
        if parameters is not None:
            values["parameters"] = optional_int(parameters, "parameters")
        if provenance is not None:
            values["provenance"] = {**claim.run.provenance, **plain_dict(provenance, "provenance")}
        rows: dict[type[Table], list[dict[str, Any]]] = {
            ScoreRow: score_rows(claim.run.id, scores),
            CurveRow: curve_rows(claim.run.id, curves),
            ModelRow: []
            if model is None
            else [model_row(claim.run.id, model.path, model.sha256, model.size_bytes)],
        }
        return self._transact(lambda session: _write_results(session, claim, values, rows))

    def recover(
        self, run_ids: Sequence[int], is_alive: Callable[[str], bool], max_attempts: int = 3
    ) -> list[Run]:
        """Take back the runs whose lease ran out or whose worker is not alive.

        They are planned again, or failed once `max_attempts` are used up. Returns them as they
        were while running, with the trial that Optuna still holds open.
        """
        held = self._read(lambda session: _running(session, run_ids))
        lost = [
            (run, until) for run, until in held if until <= now() or not is_alive(run.worker or "")
        ]
        if not lost:
            return []
        return self._transact(
            lambda session: [
                run for run, until in lost if _take_back(session, run, until, max_attempts)
            ]
        )

    def reset(self, run_ids: Sequence[int], statuses: Sequence[str] = ("failed",)) -> int:
        """Plan finished runs anew, without their old results and weights; return how many.

        Raises:
            StoreError: If a status is not one of the finished ones.
        """
        for status in statuses:
            check_finished(status)
        if not self._read(lambda session: _with_statuses(session, run_ids, statuses)):
            return 0
        count, paths = self._transact(lambda session: _reset(session, run_ids, statuses))
        for path in paths:
            ModelFiles(self._engine.url).remove(path)
        return count

    def counts(self, run_ids: Sequence[int]) -> dict[str, int]:
        """Return how many of the runs are in each status, zeros too."""
        found = list(self.statuses(run_ids).values())
        return {status: found.count(status) for status in STATUSES}

    def statuses(self, run_ids: Sequence[int]) -> dict[int, str]:
        """Return the status of each run; the cheap way to watch many."""
        return self._read(lambda session: _statuses(session, run_ids))

    def runs(self, run_ids: Sequence[int]) -> list[Run]:
        """Return the runs, in the order of their ids."""
        return self._read(lambda session: read_runs(session, run_ids))

    def scores(self, run_ids: Sequence[int]) -> list[Score]:
        """Return the scores of the runs, in the order of the runs' ids."""
        return self._read(lambda session: read_scores(session, run_ids))

    def components(self, code_hashes: Iterable[str]) -> dict[str, tuple[Component, ...]]:
        """Return the parts that each `code_hash` of a run stands for; none where not noted."""
        return self._read(lambda session: read_components(session, code_hashes))

    def environment(self, facts: Mapping[str, object]) -> int:
        """Store facts about machine and packages, once; return their id."""
        kept = plain_dict(facts, "environment")
        row: dict[str, Any] = {"hash": fingerprint(kept), "facts": kept, "created_at": now()}
        known = self._read(lambda session: _environment_id(session, row["hash"]))
        return known or self._transact(lambda session: _add_environment(session, row))

    def describe_study(self, name: str, description: str) -> str | None:
        """Set the description of a study, new or not; return what it was, None if it had none."""
        before = self._read(lambda session: _description(session, name))
        if before != description:
            self._transact(lambda session: _describe_study(session, name, description))
        return before

    def freeze(
        self, study: str, protocol: Mapping[str, object], run_ids: Sequence[int] | None = None
    ) -> Frozen:
        """Keep the plan of a study as it is now; one equal to a kept plan changes nothing.

        `runs_before` of the answer says whether a confirming run of the study had begun when this
        plan was first frozen; of `run_ids` alone, where these are the runs that it is about.

        Raises:
            StoreError: If the protocol holds what cannot be stored.
        """
        kept = plain_dict(protocol, "protocol")
        return self._transact(lambda session: _freeze(session, study, kept, run_ids))

    def keep_plan(self, study: str, plan: Mapping[str, object]) -> int:
        """Keep the resolved plan of a call, an equal one once, and note the call; return its id.

        Raises:
            StoreError: If the plan holds what cannot be stored.
        """
        kept = plain_dict(plan, "plan")
        return self._transact(lambda session: _keep_plan(session, study, kept))

    def choose(self, choice: Choice) -> Choice:
        """Keep what tuning chose; return what is kept, which is the first of the same search.

        Raises:
            StoreError: If the choice holds what cannot be stored.
        """
        row = choice_row(choice)
        found = self._read(lambda session: _find_choice(session, row))
        return found or self._transact(lambda session: _add_choice(session, row))

    def save_model(self, run_id: int, *, path: str, sha256: str, size_bytes: int) -> None:
        """Note where the weights of a run were saved, in place of an older note of that path.

        A run that is planned anew loses its models, as it does its results.

        Raises:
            StoreError: If there is no such run, or `sha256` is not 64 hexadecimal digits.
        """
        row = model_row(run_id, path, sha256, size_bytes)
        self._transact(lambda session: _save_model(session, row))

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
        self._transact(lambda session: _add_later_scores(session, run_id, rows))

    def _update(self, statement: Update) -> bool:
        return self._transact(lambda session: _change(session, statement))

    def _read(self, work: Callable[[Session], T]) -> T:
        return transact(self._reader, work)

    def _transact(self, work: Callable[[Session], T]) -> T:
        return transact(self._engine, work)


PLANNED_FACTS = ("config_id", "code_hash", "environment_id", "provenance")
CHOICE_KEY = ("study", "task", "arm", "search")
SCORE_KEY = ("split", "length", "metric", "bin", "shift")
RESULTS = (ScoreRow, CurveRow, ModelRow)


def add_missing(
    session: Session, table: type[Table], rows: Sequence[Mapping[str, Any]], *key: str
) -> None:
    """Insert the rows whose key is not there yet; others may be inserting the same."""
    if rows:
        dialect: Any = import_module(f"sqlalchemy.dialects.{session.get_bind().dialect.name}")
        statement: Insert = dialect.insert(table).on_conflict_do_nothing(index_elements=list(key))
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


@dataclass(frozen=True)
class _Known:
    """A run that is there already: as much of it as planning needs."""

    id: int
    status: str
    superseded: bool


def _known_runs(session: Session, identities: Iterable[str]) -> dict[str, _Known]:
    found: dict[str, _Known] = {}
    columns = (RunRow.identity, RunRow.id, RunRow.status, RunRow.superseded)
    for part in chunks(identities):
        for row in session.execute(select(*columns).where(RunRow.identity.in_(part))):
            found[row[0]] = _Known(row[1], row[2], row[3])
    return found


def _plan(
    session: Session, rows: Sequence[dict[str, Any]], parts: Sequence[dict[str, Any]]
) -> list[int]:
    """Add the runs that are new, with the parts behind them; return the ids of all."""
    known = _known_runs(session, [row["identity"] for row in rows])
    waiting = [row for row in rows if _is_open(known.get(row["identity"]))]
    add_missing(session, ComponentRow, parts, "code_hash", "kind", "name")
    placed = _with_configs(session, waiting)
    # Those that are there are not tried: an attempt, even one in vain, uses up an id.
    new = [row for row in placed if row["identity"] not in known]
    add_missing(session, RunRow, new, "identity")
    there = known | _known_runs(session, [row["identity"] for row in new])
    _bring_up_to_date(session, [row for row in placed if row["identity"] in known])
    _set_superseded(session, [run.id for run in known.values() if run.superseded], False)
    return [there[row["identity"]].id for row in rows]


def _is_open(run: _Known | None) -> bool:
    return run is None or run.status == "planned"


def _with_configs(session: Session, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Store the configs of runs; return their rows with the ids of these, in the order given."""
    placed: dict[str, dict[str, Any]] = {}
    for study in sorted({row["study"] for row in rows}):
        own = [dict(row) for row in rows if row["study"] == study]
        add_study(session, study)
        places = add_configs(session, study, [row.pop("config") for row in own])
        for row, place in zip(own, places, strict=True):
            placed[row["identity"]] = {**row, "config_id": place}
    return [placed[identity] for identity in dict.fromkeys(row["identity"] for row in rows)]


def _bring_up_to_date(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Let runs that wait still have what the planner knows now."""
    if not rows:
        return
    table = RunRow.__table__.c
    facts = {name: bindparam(f"new_{name}", type_=table[name].type) for name in PLANNED_FACTS}
    waiting = update(RunRow).where(table.identity == bindparam("own"), table.status == "planned")
    values = [
        {"own": row["identity"], **{f"new_{name}": row[name] for name in PLANNED_FACTS}}
        for row in rows
    ]
    session.connection().execute(waiting.values(facts), values)


def _others_of_arms(session: Session, run_ids: Sequence[int]) -> list[int]:
    """Return the runs of the arms of these runs, on their tasks, that are not among them."""
    own = set(run_ids)
    cell = (RunRow.study, RunRow.task, RunRow.arm)
    arms = {
        tuple(row)
        for part in chunks(own)
        for row in session.execute(select(*cell).where(RunRow.id.in_(part)).distinct())
    }
    studies = sorted({study for study, _, _ in arms})
    query = select(RunRow.id, *cell).where(RunRow.study.in_(studies), RunRow.superseded.is_(False))
    return [
        number for number, *of in session.execute(query) if tuple(of) in arms and number not in own
    ]


def _set_superseded(session: Session, run_ids: Iterable[int], superseded: bool) -> None:
    for part in chunks(run_ids):
        session.execute(
            update(RunRow)
            .where(RunRow.id.in_(part))
            .values(superseded=superseded)
            .execution_options(synchronize_session=False)
        )


def _first_planned(session: Session, run_ids: Sequence[int], lock: bool) -> int | None:
    """Return the planned run of lowest (priority, id)."""
    found: list[tuple[int, int]] = []
    for part in chunks(run_ids):
        query = (
            select(RunRow.priority, RunRow.id)
            .where(RunRow.id.in_(part), RunRow.status == "planned")
            .order_by(RunRow.priority, RunRow.id)
            .limit(1)
        )
        # SQLite has no row locks; there the transaction has begun as a writer instead.
        query = query.with_for_update(skip_locked=True) if lock else query
        found += [(row[0], row[1]) for row in session.execute(query)]
    return min(found)[1] if found else None


def _claim(session: Session, worker: str, run_ids: Sequence[int], lease: timedelta) -> Claim | None:
    first = _first_planned(session, run_ids, lock=True)
    if first is None:
        return None
    row = session.get_one(RunRow, first)
    row.status, row.attempt, row.worker = "running", row.attempt + 1, worker
    row.started_at = started = now()
    row.lease_until, row.finished_at = started + lease, None
    session.flush()
    return Claim(run_record(row), row.attempt, worker)


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


def _change(session: Session, statement: Update) -> bool:
    """Apply an update of one run; False when there was none to change."""
    statement = statement.returning(RunRow.id).execution_options(synchronize_session=False)
    return session.scalars(statement).one_or_none() is not None


def _write_results(
    session: Session,
    claim: Claim,
    values: dict[str, Any],
    rows: Mapping[type[Table], list[dict[str, Any]]],
) -> bool:
    """End a claimed run and replace its scores, curves and models; False when it was lost."""
    if not _change(session, _owned(claim).values(**values)):
        return False
    for table in RESULTS:
        session.execute(delete(table).where(table.run_id == claim.run.id))
        if rows[table]:
            # By the connection, as plain rows: a session would make objects of the ORM.
            session.connection().execute(insert(table), rows[table])
    return True


def _running(session: Session, run_ids: Sequence[int]) -> list[tuple[Run, datetime]]:
    """Return the runs that a worker holds, each with the end of its lease."""
    found: list[tuple[Run, datetime]] = []
    for part in chunks(run_ids):
        query = select(RunRow).where(RunRow.id.in_(part), RunRow.status == "running")
        for row in session.scalars(query.order_by(RunRow.id)):
            assert row.lease_until is not None
            found.append((run_record(row), row.lease_until))
    return found


def _take_back(session: Session, run: Run, until: datetime, max_attempts: int) -> bool:
    """Take a run from a worker that lost it; False when it was renewed or ended meanwhile."""
    held = _owned(Claim(run, run.attempt, run.worker or "")).where(RunRow.lease_until == until)
    if run.attempt < max_attempts:
        return _change(session, held.values(**_unclaimed("planned")))
    reason = f"its worker was lost in each of {run.attempt} attempts, the last was {run.worker}"
    ended = {**_unclaimed("failed"), "worker": run.worker, "started_at": run.started_at}
    return _change(session, held.values(**ended, reason=reason, finished_at=now()))


def _with_statuses(
    session: Session, run_ids: Sequence[int], statuses: Sequence[str], lock: bool = False
) -> list[int]:
    found: list[int] = []
    for part in chunks(run_ids):
        query = select(RunRow.id).where(RunRow.id.in_(part), RunRow.status.in_(statuses))
        found.extend(session.scalars(query.with_for_update() if lock else query))
    return found


def _reset(
    session: Session, run_ids: Sequence[int], statuses: Sequence[str]
) -> tuple[int, list[str]]:
    """Plan finished runs again and drop their results; return how many, and paths of weights."""
    found = _with_statuses(session, run_ids, statuses, lock=True)
    fresh = {
        **_unclaimed("planned"),
        **dict.fromkeys(("reason", "finished_at", "wall_seconds", "cpu_seconds", "peak_bytes")),
        "attempt": 0,
    }
    paths: list[str] = []
    for part in chunks(found):
        paths += session.scalars(select(ModelRow.path).where(ModelRow.run_id.in_(part)))
        for table in RESULTS:
            session.execute(delete(table).where(table.run_id.in_(part)))
        session.execute(update(RunRow).where(RunRow.id.in_(part)).values(**fresh))
    drop_choices(session, found)
    return len(found), paths


def drop_choices(session: Session, run_ids: Iterable[int]) -> None:
    """Forget what tuning chose by runs that are done again or gone."""
    lost = set(run_ids)
    rows = session.scalars(select(ChoiceRow)) if lost else ()
    for row in [row for row in rows if tuned_runs(row) & lost]:
        session.delete(row)


def add_study(session: Session, name: str) -> None:
    """Note a study that has none yet of what refers to it."""
    if session.get(StudyRow, name) is None:
        add_missing(session, StudyRow, [{"name": name, "created_at": now()}], "name")


def _description(session: Session, name: str) -> str | None:
    return session.scalar(select(StudyRow.description).where(StudyRow.name == name))


def _describe_study(session: Session, name: str, description: str) -> None:
    add_study(session, name)
    change = update(StudyRow).where(StudyRow.name == name)
    session.execute(change.values(description=description))


def _environment_id(session: Session, digest: str) -> int | None:
    query = select(EnvironmentRow.id).where(EnvironmentRow.hash == digest)
    return session.scalars(query).one_or_none()


def _add_environment(session: Session, row: dict[str, Any]) -> int:
    add_missing(session, EnvironmentRow, [row], "hash")
    return session.scalars(
        select(EnvironmentRow.id).where(EnvironmentRow.hash == row["hash"])
    ).one()


def _freeze(
    session: Session, study: str, protocol: dict[str, Any], run_ids: Sequence[int] | None
) -> Frozen:
    """Keep a protocol with the time of its freezing; an equal one keeps its first time."""
    add_study(session, study)
    digest = fingerprint(protocol)
    row = {
        "study": study,
        "hash": digest,
        "protocol": protocol,
        "created_at": now(),
        "runs_before": _has_begun(session, study, run_ids),
    }
    add_missing(session, ProtocolRow, [row], "study", "hash")
    query = select(ProtocolRow).where(ProtocolRow.study == study, ProtocolRow.hash == digest)
    return frozen_record(session.scalars(query).one())


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


def _keep_plan(session: Session, study: str, plan: dict[str, Any]) -> int:
    """Keep a plan with the time of its first and its last call."""
    add_study(session, study)
    row = {"study": study, "hash": fingerprint(plan), "plan": plan, "created_at": now()}
    add_missing(session, PlanRow, [{**row, "called_at": row["created_at"]}], "study", "hash")
    called = update(PlanRow).where(PlanRow.study == study, PlanRow.hash == row["hash"])
    called = called.values(called_at=now()).execution_options(synchronize_session=False)
    return session.scalars(called.returning(PlanRow.id)).one()


def _find_choice(session: Session, row: Mapping[str, Any]) -> Choice | None:
    """Return what the search of a choice has chosen before."""
    same = (getattr(ChoiceRow, name) == row[name] for name in CHOICE_KEY)
    found = session.scalars(select(ChoiceRow).where(*same)).one_or_none()
    return None if found is None else choice_record(found)


def _add_choice(session: Session, row: dict[str, Any]) -> Choice:
    add_missing(session, ChoiceRow, [row], *CHOICE_KEY)
    found = _find_choice(session, row)
    assert found is not None
    return found


def _save_model(session: Session, row: dict[str, Any]) -> None:
    """Note the saved weights of a run, in place of what was noted for the same path."""
    _locked_status(session, row["run_id"])
    same = (ModelRow.run_id == row["run_id"], ModelRow.path == row["path"])
    session.execute(delete(ModelRow).where(*same))
    session.execute(insert(ModelRow), [row])


def _add_later_scores(session: Session, run_id: int, rows: Sequence[dict[str, Any]]) -> None:
    status = _locked_status(session, run_id)
    if status not in MEASURED:
        raise StoreError(
            f"run {run_id} is {status}; scores are added to runs that are done or diverged"
        )
    for part in chunks(rows, len(SCORE_KEY)):
        same = [
            and_(*(getattr(ScoreRow, name).is_not_distinct_from(row[name]) for name in SCORE_KEY))
            for row in part
        ]
        session.execute(delete(ScoreRow).where(ScoreRow.run_id == run_id, or_(*same)))
    if rows:
        session.execute(insert(ScoreRow), list(rows))


def _locked_status(session: Session, run_id: int) -> str:
    """Return the status of a run, which stays as it is until the transaction ends."""
    query = select(RunRow.status).where(RunRow.id == run_id).with_for_update()
    status = session.scalars(query).one_or_none()
    if status is None:
        raise StoreError(f"no run has the id {run_id}")
    return status


def _statuses(session: Session, run_ids: Iterable[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for part in chunks(run_ids):
        query = select(RunRow.id, RunRow.status).where(RunRow.id.in_(part))
        found.update({number: status for number, status in session.execute(query)})
    return found
