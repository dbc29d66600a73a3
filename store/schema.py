"""The tables: typed rows under the prefix `es_`, and the readable view `results`."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Dialect,
    ForeignKey,
    Index,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from store.records import PHASES, STATUSES

PREFIX = "es_"
VERSION_TABLE = "es_alembic_version"
VIEWS = ("results",)


class Instant(TypeDecorator[datetime]):
    """A UTC instant as ISO 8601 text of fixed width, so that text order is time order."""

    impl = String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"an instant needs a time zone; got {value.isoformat()}")
        return value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


class Table(DeclarativeBase):
    """The tables of this store. Constraints are named, since SQLite cannot alter nameless ones."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: Instant(), str: Text(), dict[str, Any]: JSON()}  # noqa: RUF012


class EnvironmentRow(Table):
    """The machine and the packages that runs ran on, once per distinct set of facts."""

    __tablename__ = "es_environments"

    id: Mapped[int] = mapped_column(primary_key=True)
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    facts: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class StudyRow(Table):
    """A study that has runs, planned or done."""

    __tablename__ = "es_studies"

    name: Mapped[str] = mapped_column(primary_key=True)
    description: Mapped[str | None]
    created_at: Mapped[datetime]


class RunRow(Table):
    """A run from plan to end. `attempt` is 0 until a worker first claims it."""

    __tablename__ = "es_runs"
    __table_args__ = (
        CheckConstraint(f"status IN {STATUSES}", name="status"),
        CheckConstraint(f"phase IN {PHASES}", name="phase"),
        Index("ix_es_runs_study_status", "study", "status"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[str] = mapped_column(ForeignKey("es_studies.name"))
    task: Mapped[str]
    arm: Mapped[str]
    phase: Mapped[str]
    seed: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str]
    reason: Mapped[str | None]
    config: Mapped[dict[str, Any]]
    config_hash: Mapped[str]
    code_hash: Mapped[str | None]
    identity: Mapped[str] = mapped_column(unique=True)
    parameters: Mapped[int | None] = mapped_column(BigInteger)
    steps: Mapped[int] = mapped_column(BigInteger)
    attempt: Mapped[int]
    worker: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    wall_seconds: Mapped[float | None]
    cpu_seconds: Mapped[float | None]
    peak_bytes: Mapped[int | None] = mapped_column(BigInteger)
    optuna_study: Mapped[str | None]
    optuna_trial: Mapped[int | None]
    environment_id: Mapped[int | None] = mapped_column(ForeignKey("es_environments.id"))
    priority: Mapped[int] = mapped_column(BigInteger)
    provenance: Mapped[dict[str, Any]]


class ComponentRow(Table):
    """The source of one part of the runs with this `code_hash`; see `store.records.Component`."""

    __tablename__ = "es_components"

    code_hash: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    origin: Mapped[str]
    source_hash: Mapped[str]


class ScoreRow(Table):
    """One measured number. `status` is null when it was finite, else 'nan', 'inf' or '-inf'.

    `source` is null for what the run itself measured, else names what measured it later.
    """

    __tablename__ = "es_scores"

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("es_runs.id", ondelete="CASCADE"), index=True)
    split: Mapped[str]
    length: Mapped[int] = mapped_column(BigInteger)
    metric: Mapped[str]
    bin: Mapped[int | None] = mapped_column(BigInteger)
    n: Mapped[int] = mapped_column(BigInteger)
    correct: Mapped[int | None] = mapped_column(BigInteger)
    value: Mapped[float | None]
    status: Mapped[str | None]
    created_at: Mapped[datetime | None]
    source: Mapped[str | None]


class CurveRow(Table):
    """One point of a training curve; null where the number was not finite."""

    __tablename__ = "es_curves"

    run_id: Mapped[int] = mapped_column(
        ForeignKey("es_runs.id", ondelete="CASCADE"), primary_key=True
    )
    metric: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    value: Mapped[float | None]


class ProtocolRow(Table):
    """The plan of a study, frozen; `runs_before`: had a confirming run begun by then?"""

    __tablename__ = "es_protocols"
    __table_args__ = (UniqueConstraint("study", "hash"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[str] = mapped_column(ForeignKey("es_studies.name"))
    hash: Mapped[str] = mapped_column(String(64))
    protocol: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    runs_before: Mapped[bool]


class ModelRow(Table):
    """The saved weights of a run: a file beside the database."""

    __tablename__ = "es_models"

    run_id: Mapped[int] = mapped_column(
        ForeignKey("es_runs.id", ondelete="CASCADE"), primary_key=True
    )
    path: Mapped[str] = mapped_column(primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime]


def is_ours(name: str | None, kind: str) -> bool:
    """Tell our tables and views from those of others in the same database."""
    return name is not None and (name.startswith(PREFIX) or (kind == "table" and name in VIEWS))


def now() -> datetime:
    """Return the present instant, in UTC."""
    return datetime.now(UTC)
