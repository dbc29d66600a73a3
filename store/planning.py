"""How runs are planned: each of them once, and which of them the last call did not ask for."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from sqlalchemy import Insert, bindparam, select, update
from sqlalchemy.orm import Session

from store.configs import add_configs
from store.database import chunks, rows_among
from store.models import ComponentRow, RunRow, StudyRow, Table, now

PLANNED_FACTS = ("config_id", "code_hash", "environment_id", "provenance")


class Known(NamedTuple):
    """A run that is there already: as much of it as planning needs."""

    id: int
    status: str
    superseded: bool


def known_runs(session: Session, identities: Iterable[str]) -> dict[str, Known]:
    """Return the runs that are there, by identity."""
    query = select(RunRow.identity, RunRow.id, RunRow.status, RunRow.superseded)
    rows = rows_among(session, query, RunRow.identity, identities)
    return {row[0]: Known(*row[1:]) for row in rows}


def plan_runs(
    session: Session, rows: Sequence[dict[str, Any]], parts: Sequence[dict[str, Any]]
) -> list[int]:
    """Add the runs that are new, with the parts behind them; return the ids of all."""
    known = known_runs(session, [row["identity"] for row in rows])
    add_missing(session, ComponentRow, parts, "code_hash", "kind", "name")
    over = {identity for identity, run in known.items() if run.status != "planned"}
    placed = _with_configs(session, [row for row in rows if row["identity"] not in over])
    # Those that are there are not tried: an attempt, even one in vain, uses up an id.
    new = [row for row in placed if row["identity"] not in known]
    add_missing(session, RunRow, new, "identity")
    there = known | known_runs(session, [row["identity"] for row in new])
    _bring_up_to_date(session, [row for row in placed if row["identity"] in known])
    set_superseded(session, [run.id for run in known.values() if run.superseded], False)
    return [there[row["identity"]].id for row in rows]


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


def others_of_arms(session: Session, run_ids: Sequence[int]) -> list[int]:
    """Return the runs of the arms of these runs, on their tasks, that are not among them."""
    own = set(run_ids)
    cell = (RunRow.study, RunRow.task, RunRow.arm)
    arms = {tuple(row) for row in rows_among(session, select(*cell).distinct(), RunRow.id, own)}
    studies = sorted({study for study, _, _ in arms})
    query = select(RunRow.id, *cell).where(RunRow.study.in_(studies), RunRow.superseded.is_(False))
    return [
        number for number, *of in session.execute(query) if tuple(of) in arms and number not in own
    ]


def set_superseded(session: Session, run_ids: Iterable[int], superseded: bool) -> None:
    """Note of runs whether the last call of their study left them out."""
    for part in chunks(run_ids):
        change = update(RunRow).where(RunRow.id.in_(part)).values(superseded=superseded)
        session.execute(change.execution_options(synchronize_session=False))


def add_study(session: Session, name: str) -> None:
    """Note a study that has none yet of what refers to it."""
    if session.get(StudyRow, name) is None:
        add_missing(session, StudyRow, [{"name": name, "created_at": now()}], "name")


def add_missing(
    session: Session, table: type[Table], rows: Sequence[Mapping[str, Any]], *key: str
) -> None:
    """Insert the rows whose key is not there yet; others may be inserting the same."""
    if rows:
        dialect: Any = import_module(f"sqlalchemy.dialects.{session.get_bind().dialect.name}")
        statement: Insert = dialect.insert(table).on_conflict_do_nothing(index_elements=list(key))
        session.execute(statement, rows)
