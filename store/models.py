"""The tables and the readable views: what each column means, and the version of all of them.

New databases are made from what is declared here; a database of an earlier version is brought here
by the scripts in `store.migrations`.
"""

from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Dialect,
    Double,
    ForeignKey,
    Index,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from store.records import PHASES, STATUSES

PREFIX = "es_"
"""Our tables carry it: others keep theirs in the same database."""
VERSION_TABLE = "es_alembic_version"


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
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: Instant(),
        float: Double(),
        str: Text(),
        dict[str, Any]: JSON(),
        list[Any]: JSON(),
    }


def now() -> datetime:
    """Return the present instant, in UTC."""
    return datetime.now(UTC)


CELL = ("study", "task", "arm")
SCORE_KEY = ("run_id", "split", "metric", "length", "shift", "bin")
REST = ("phase", "status", "superseded", "seed")


class EnvironmentRow(Table):
    """The machine and the packages that runs ran on, once per distinct set of facts."""

    __tablename__ = "es_environments"

    id: Mapped[int] = mapped_column(primary_key=True)
    hash: Mapped[str] = mapped_column(String(64), unique=True, doc="sha256 of the facts")
    facts: Mapped[dict[str, Any]] = mapped_column(doc="python, platform, cpu, packages, device …")
    created_at: Mapped[datetime] = mapped_column(doc="when it was first met")


class StudyRow(Table):
    """A study that has runs, planned or done."""

    __tablename__ = "es_studies"

    name: Mapped[str] = mapped_column(primary_key=True)
    description: Mapped[str | None] = mapped_column(doc="question, hypotheses, protocol")
    created_at: Mapped[datetime]
    constants: Mapped[dict[str, Any] | None] = mapped_column(
        doc="the config options that are the same in all its runs, by dotted key"
    )


class ConfigRow(Table):
    """A resolved config, once for all the seeds of a study that it was run with."""

    __tablename__ = "es_configs"
    __table_args__ = (UniqueConstraint("study", "hash"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[str] = mapped_column(ForeignKey("es_studies.name"))
    hash: Mapped[str] = mapped_column(String(64), doc="sha256 of the config")
    config: Mapped[dict[str, Any]] = mapped_column(doc="every option, defaults too")
    options: Mapped[dict[str, Any]] = mapped_column(
        doc="the options that vary within the study, by dotted key; null where one lacks"
    )


class RunRow(Table):
    """A run from plan to end: one config with one replicate seed."""

    __tablename__ = "es_runs"
    __table_args__ = (
        CheckConstraint(f"status IN {STATUSES}", name="status"),
        CheckConstraint(f"phase IN {PHASES}", name="phase"),
        Index("ix_es_runs_study_status", "study", "status"),
        # Most questions read these columns alone, and never the long ones beside them.
        Index("ix_es_runs_cell", *CELL, "config_id", *REST),
        Index("ix_es_runs_config_id", "config_id", *CELL, *REST),
        # An id stays that of one run for good: trials and saved models refer to it.
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[str] = mapped_column(ForeignKey("es_studies.name"))
    task: Mapped[str]
    arm: Mapped[str] = mapped_column(doc="the variant that is compared")
    phase: Mapped[str] = mapped_column(doc="tune: to choose a setting; confirm: the result")
    seed: Mapped[int] = mapped_column(BigInteger, doc="the replicate")
    status: Mapped[str] = mapped_column(doc=", ".join(STATUSES))
    reason: Mapped[str | None] = mapped_column(doc="why it diverged, failed or does not apply")
    config_hash: Mapped[str] = mapped_column(doc="hash of the options that differ from defaults")
    code_hash: Mapped[str | None] = mapped_column(doc="stands for the rows of es_components")
    identity: Mapped[str] = mapped_column(unique=True, doc="under which the run exists once")
    parameters: Mapped[int | None] = mapped_column(BigInteger, doc="weights of the model")
    steps: Mapped[int] = mapped_column(BigInteger, doc="training steps")
    attempt: Mapped[int] = mapped_column(doc="how often a worker has claimed it")
    worker: Mapped[str | None] = mapped_column(doc="host/process/start of who has or had it")
    lease_until: Mapped[datetime | None] = mapped_column(doc="till when no other may claim it")
    created_at: Mapped[datetime] = mapped_column(doc="when it was planned first")
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    wall_seconds: Mapped[float | None]
    cpu_seconds: Mapped[float | None]
    peak_bytes: Mapped[int | None] = mapped_column(BigInteger, doc="peak of GPU memory")
    optuna_study: Mapped[str | None] = mapped_column(doc="Optuna's study of a tuning run")
    optuna_trial: Mapped[int | None] = mapped_column(doc="and the number of its trial there")
    environment_id: Mapped[int | None] = mapped_column(ForeignKey("es_environments.id"))
    priority: Mapped[int] = mapped_column(BigInteger, doc="orders the claims, low first")
    provenance: Mapped[dict[str, Any]] = mapped_column(
        doc="command, git commit and difference, plug-ins, seeds, device …"
    )
    config_id: Mapped[int] = mapped_column(ForeignKey("es_configs.id"))
    superseded: Mapped[bool] = mapped_column(
        doc="did the last call of the study with this task and arm not ask for it?"
    )

    settings: Mapped[ConfigRow] = relationship(lazy="joined", innerjoin=True)

    @property
    def config(self) -> dict[str, Any]:
        """The resolved config."""
        return self.settings.config


class ComponentRow(Table):
    """The source of one part of the runs with this `code_hash`: what they were computed by."""

    __tablename__ = "es_components"

    code_hash: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(
        primary_key=True, doc="position, mask, task, skeleton, training, helper …"
    )
    name: Mapped[str] = mapped_column(primary_key=True)
    origin: Mapped[str] = mapped_column(doc="module:class, file:class, a module or a file")
    source_hash: Mapped[str] = mapped_column(doc="fingerprint of the code of its file")


class ScoreRow(Table):
    """One measured number of a run."""

    __tablename__ = "es_scores"
    __table_args__ = (
        # Holds all that a filter or a mean needs, so that the table itself is not read.
        Index("ix_es_scores_key", *SCORE_KEY, "value"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("es_runs.id", ondelete="CASCADE"))
    split: Mapped[str] = mapped_column(doc="train, validation or test")
    length: Mapped[int] = mapped_column(BigInteger, doc="of the sequences")
    metric: Mapped[str] = mapped_column(doc="accuracy, exact, skill, nll (nats) …")
    bin: Mapped[int | None] = mapped_column(
        BigInteger, doc="null for the whole, else an output index or a distance"
    )
    n: Mapped[int] = mapped_column(BigInteger, doc="how many answers or sequences were scored")
    correct: Mapped[int | None] = mapped_column(BigInteger, doc="how many of them were right")
    value: Mapped[float | None] = mapped_column(doc="null where it was not finite")
    status: Mapped[str | None] = mapped_column(doc="then 'nan', 'inf' or '-inf'; else null")
    created_at: Mapped[datetime | None] = mapped_column(doc="null: when the run was finished")
    source: Mapped[str | None] = mapped_column(doc="null: the run itself; else what added it later")
    shift: Mapped[str | None] = mapped_column(
        doc="null: as trained, but for the length; else what was shifted besides"
    )
    imputed: Mapped[bool] = mapped_column(
        default=False, doc="the run diverged: the score of a model that learned nothing"
    )


class CurveRow(Table):
    """One point of a training curve."""

    __tablename__ = "es_curves"
    __table_args__ = {"sqlite_with_rowid": False}

    run_id: Mapped[int] = mapped_column(
        ForeignKey("es_runs.id", ondelete="CASCADE"), primary_key=True
    )
    metric: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    value: Mapped[float | None] = mapped_column(doc="null where it was not finite")


class PlanRow(Table):
    """The resolved plan of a call of a study, once for each plan that differs."""

    __tablename__ = "es_plans"
    __table_args__ = (UniqueConstraint("study", "hash"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[str] = mapped_column(ForeignKey("es_studies.name"))
    hash: Mapped[str] = mapped_column(String(64), doc="sha256 of the plan")
    plan: Mapped[dict[str, Any]] = mapped_column(doc="tasks, arms, settings, hypotheses …")
    created_at: Mapped[datetime] = mapped_column(doc="when it was called first")
    called_at: Mapped[datetime] = mapped_column(doc="when it was called last")


class ChoiceRow(Table):
    """The setting that tuning chose for an arm, and why, written once by the study."""

    __tablename__ = "es_choices"
    __table_args__ = (UniqueConstraint(*CELL, "search"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[str] = mapped_column(ForeignKey("es_studies.name"))
    task: Mapped[str]
    arm: Mapped[str]
    search: Mapped[str] = mapped_column(doc="hash of the settings tried and of the rule")
    setting: Mapped[dict[str, Any] | None] = mapped_column(
        JSON(none_as_null=True), doc="the options chosen, by dotted key; null: none was"
    )
    nll: Mapped[float | None] = mapped_column(doc="its mean validation nll (nats)")
    reason: Mapped[str | None] = mapped_column(doc="why none was chosen")
    rule: Mapped[str] = mapped_column(doc="how it was chosen")
    tried: Mapped[list[Any]] = mapped_column(doc="setting, nll, status and runs of each one tried")
    near: Mapped[list[Any]] = mapped_column(doc="the settings that are as good within tolerance")
    edges: Mapped[dict[str, Any]] = mapped_column(
        doc="the options that are the lowest or highest of those tried"
    )
    runs: Mapped[list[Any]] = mapped_column(doc="the ids of the runs with the setting chosen")
    created_at: Mapped[datetime]


class ProtocolRow(Table):
    """The plan of a study as it was frozen, once for each plan that differs."""

    __tablename__ = "es_protocols"
    __table_args__ = (UniqueConstraint("study", "hash"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[str] = mapped_column(ForeignKey("es_studies.name"))
    hash: Mapped[str] = mapped_column(String(64), doc="sha256 of the protocol")
    protocol: Mapped[dict[str, Any]] = mapped_column(doc="seeds, contrasts, metric, lengths …")
    created_at: Mapped[datetime] = mapped_column(doc="when it was frozen")
    runs_before: Mapped[bool] = mapped_column(doc="had a confirming run begun by then?")


class ModelRow(Table):
    """The saved weights of a run: a file beside the database."""

    __tablename__ = "es_models"

    run_id: Mapped[int] = mapped_column(
        ForeignKey("es_runs.id", ondelete="CASCADE"), primary_key=True
    )
    path: Mapped[str] = mapped_column(primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), doc="of the file")
    size_bytes: Mapped[int] = mapped_column(BigInteger, doc="of the file")
    created_at: Mapped[datetime] = mapped_column(doc="when it was saved")


MEASURED = """
SELECT r.id AS run_id, r.study, r.task, r.arm, r.phase, r.seed, r.status,
       r.superseded, s.split, s.length, s.shift, s.metric, s.bin, s.n, s.correct, s.value,
       s.status AS value_status, s.imputed, c.options, r.parameters, r.steps, r.wall_seconds,
       r.started_at, r.finished_at, s.source, r.config_hash, r.code_hash, c.config
FROM es_runs AS r
JOIN es_configs AS c ON c.id = r.config_id
JOIN es_scores AS s ON s.run_id = r.id
"""

VIEWS = {
    "results": f"{MEASURED} WHERE s.bin IS NULL",
    "bins": f"{MEASURED} WHERE s.bin IS NOT NULL",
    "arms": """
SELECT r.study, r.task, r.arm, r.phase, r.superseded, c.options,
       count(*) AS runs,
       sum(CASE WHEN r.status = 'done' THEN 1 ELSE 0 END) AS done,
       sum(CASE WHEN r.status = 'diverged' THEN 1 ELSE 0 END) AS diverged,
       sum(CASE WHEN r.status = 'failed' THEN 1 ELSE 0 END) AS failed,
       max(r.parameters) AS parameters, avg(r.wall_seconds) AS mean_wall_seconds,
       max(r.peak_bytes) AS peak_bytes, r.config_hash
FROM es_runs AS r JOIN es_configs AS c ON c.id = r.config_id
GROUP BY r.study, r.task, r.arm, r.phase, r.superseded, r.config_hash, c.id
""",
    "curves": """
SELECT p.run_id, r.study, r.task, r.arm, r.phase, r.seed, p.metric, p.step, p.value
FROM es_curves AS p JOIN es_runs AS r ON r.id = p.run_id
""",
    "failures": """
SELECT r.id AS run_id, r.study, r.task, r.arm, r.phase, r.seed, r.status, r.reason,
       c.options, r.attempt, r.worker, r.finished_at
FROM es_runs AS r JOIN es_configs AS c ON c.id = r.config_id
WHERE r.status IN ('diverged', 'failed', 'not_applicable')
""",
}
ABOUT_VIEWS = {
    "results": "One row for each run, split, length and metric; `options` holds as JSON what "
    "varies within the study.",
    "bins": "The same for the parts of scores: one row for each output index or distance.",
    "arms": "One row for each arm and setting: how many runs ended how, and what they cost.",
    "curves": "The points of training curves, with the run that each belongs to.",
    "failures": "The runs that diverged, failed or do not apply, and why.",
}
SCHEMA_COLUMNS = ("table", "column", "type", "null", "key", "about")


def schema_rows() -> list[dict[str, str]]:
    """Return one row for each table, view and column; those of a table follow it."""
    rows: list[tuple[str, ...]] = []
    for mapper in sorted(
        RunRow.registry.mappers, key=lambda mapper: mapper.local_table.description
    ):
        table: Any = mapper.local_table
        rows.append((table.name, "", "", "", "", " ".join((mapper.class_.__doc__ or "").split())))
        for column in table.columns:
            kind = column.type.compile(dialect=sqlite.dialect())
            key = ["primary"] * column.primary_key + ["unique"] * bool(column.unique)
            key += [f"→ {foreign.target_fullname}" for foreign in column.foreign_keys]
            null = "null" * column.nullable
            rows.append((table.name, column.name, kind, null, ", ".join(key), column.doc or ""))
    rows += [(name, "", "", "", "", f"(view) {about}") for name, about in ABOUT_VIEWS.items()]
    return [dict(zip(SCHEMA_COLUMNS, row, strict=True)) for row in rows]
