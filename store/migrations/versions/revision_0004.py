"""Create the tables and the readable views."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = None
branch_labels = None
depends_on = None

STATUSES = ("planned", "running", "done", "diverged", "failed", "not_applicable")
PHASES = ("tune", "confirm")
CELL = ("study", "task", "arm")
REST = ("phase", "status", "superseded", "seed")

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

# Constraints need names, since SQLite cannot alter those without.
TABLES = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)
INSTANT = sa.String(32)
DIGEST = sa.String(64)


def upgrade() -> None:
    """Create everything."""
    _declare_settings()
    _declare_runs()
    _declare_results()
    _declare_plans()
    TABLES.create_all(op.get_bind(), checkfirst=False)
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")


def _declare_settings() -> None:
    sa.Table(
        "es_environments",
        TABLES,
        _id(),
        _column("hash", DIGEST, unique=True),
        _column("facts", sa.JSON()),
        _column("created_at", INSTANT),
    )
    sa.Table(
        "es_studies",
        TABLES,
        _column("name", sa.Text(), primary_key=True),
        _optional("description", sa.Text()),
        _column("created_at", INSTANT),
        _optional("constants", sa.JSON()),
    )
    sa.Table(
        "es_configs",
        TABLES,
        _id(),
        _study(),
        _column("hash", DIGEST),
        _column("config", sa.JSON()),
        _column("options", sa.JSON()),
        sa.UniqueConstraint("study", "hash"),
    )
    sa.Table(
        "es_components",
        TABLES,
        *(_column(name, sa.Text(), primary_key=True) for name in ("code_hash", "kind", "name")),
        *(_column(name, sa.Text()) for name in ("origin", "source_hash")),
    )


def _declare_runs() -> None:
    sa.Table(
        "es_runs",
        TABLES,
        _id(),
        _study(),
        *(_column(name, sa.Text()) for name in ("task", "arm", "phase")),
        _column("seed", sa.BigInteger()),
        _column("status", sa.Text()),
        _optional("reason", sa.Text()),
        _column("config_hash", sa.Text()),
        _optional("code_hash", sa.Text()),
        _column("identity", sa.Text(), unique=True),
        _optional("parameters", sa.BigInteger()),
        _column("steps", sa.BigInteger()),
        _column("attempt", sa.Integer()),
        _optional("worker", sa.Text()),
        _optional("lease_until", INSTANT),
        _column("created_at", INSTANT),
        *(_optional(name, INSTANT) for name in ("started_at", "finished_at")),
        *(_optional(name, sa.Double()) for name in ("wall_seconds", "cpu_seconds")),
        _optional("peak_bytes", sa.BigInteger()),
        _optional("optuna_study", sa.Text()),
        _optional("optuna_trial", sa.Integer()),
        _optional("environment_id", sa.Integer(), sa.ForeignKey("es_environments.id")),
        _column("priority", sa.BigInteger()),
        _column("provenance", sa.JSON()),
        _column("config_id", sa.Integer(), sa.ForeignKey("es_configs.id")),
        _column("superseded", sa.Boolean()),
        sa.CheckConstraint(f"status IN {STATUSES}", name="status"),
        sa.CheckConstraint(f"phase IN {PHASES}", name="phase"),
        sa.Index("ix_es_runs_study_status", "study", "status"),
        sa.Index("ix_es_runs_cell", *CELL, "config_id", *REST),
        sa.Index("ix_es_runs_config_id", "config_id", *CELL, *REST),
        sqlite_autoincrement=True,
    )


def _declare_results() -> None:
    sa.Table(
        "es_scores",
        TABLES,
        _id(),
        _run(),
        _column("split", sa.Text()),
        _column("length", sa.BigInteger()),
        _column("metric", sa.Text()),
        _optional("bin", sa.BigInteger()),
        _column("n", sa.BigInteger()),
        _optional("correct", sa.BigInteger()),
        _optional("value", sa.Double()),
        _optional("status", sa.Text()),
        _optional("created_at", INSTANT),
        _optional("source", sa.Text()),
        _optional("shift", sa.Text()),
        _column("imputed", sa.Boolean()),
        sa.Index(
            "ix_es_scores_key", "run_id", "split", "metric", "length", "shift", "bin", "value"
        ),
    )
    sa.Table(
        "es_curves",
        TABLES,
        _run(primary_key=True),
        _column("metric", sa.Text(), primary_key=True),
        _column("step", sa.BigInteger(), primary_key=True),
        _optional("value", sa.Double()),
        sqlite_with_rowid=False,
    )
    sa.Table(
        "es_models",
        TABLES,
        _run(primary_key=True),
        _column("path", sa.Text(), primary_key=True),
        _column("sha256", DIGEST),
        _column("size_bytes", sa.BigInteger()),
        _column("created_at", INSTANT),
    )


def _declare_plans() -> None:
    sa.Table(
        "es_plans",
        TABLES,
        _id(),
        _study(),
        _column("hash", DIGEST),
        _column("plan", sa.JSON()),
        _column("created_at", INSTANT),
        _column("called_at", INSTANT),
        sa.UniqueConstraint("study", "hash"),
    )
    sa.Table(
        "es_protocols",
        TABLES,
        _id(),
        _study(),
        _column("hash", DIGEST),
        _column("protocol", sa.JSON()),
        _column("created_at", INSTANT),
        _column("runs_before", sa.Boolean()),
        sa.UniqueConstraint("study", "hash"),
    )
    sa.Table(
        "es_choices",
        TABLES,
        _id(),
        _study(),
        *(_column(name, sa.Text()) for name in ("task", "arm", "search")),
        _optional("setting", sa.JSON()),
        _optional("nll", sa.Double()),
        _optional("reason", sa.Text()),
        _column("rule", sa.Text()),
        *(_column(name, sa.JSON()) for name in ("tried", "near", "edges", "runs")),
        _column("created_at", INSTANT),
        sa.UniqueConstraint(*CELL, "search"),
    )


def _column(name: str, kind: Any, *reference: sa.ForeignKey, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, *reference, nullable=False, **options)


def _optional(name: str, kind: Any, *reference: sa.ForeignKey) -> sa.Column[Any]:
    return sa.Column(name, kind, *reference)


def _id() -> sa.Column[Any]:
    return _column("id", sa.Integer(), primary_key=True)


def _study() -> sa.Column[Any]:
    return _column("study", sa.Text(), sa.ForeignKey("es_studies.name"))


def _run(**options: Any) -> sa.Column[Any]:
    runs = sa.ForeignKey("es_runs.id", ondelete="CASCADE")
    return _column("run_id", sa.Integer(), runs, **options)
