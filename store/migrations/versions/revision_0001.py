"""Create the tables and the view `results`."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STATUSES = ("planned", "running", "done", "diverged", "failed", "not_applicable")

RESULTS = """
CREATE VIEW results AS
SELECT r.id AS run_id, r.study, r.task, r.arm, r.phase, r.seed, r.status,
       s.split, s.length, s.metric, s.bin, s.n, s.correct, s.value, s.status AS value_status,
       r.parameters, r.steps, r.wall_seconds, r.started_at, r.finished_at, r.config
FROM es_runs AS r JOIN es_scores AS s ON s.run_id = r.id
"""


def upgrade() -> None:
    """Create everything."""
    _create_environments()
    _create_studies()
    _create_runs()
    _create_scores()
    _create_curves()
    op.execute(RESULTS)


def downgrade() -> None:
    """Drop everything."""
    op.execute("DROP VIEW results")
    for table in ("es_curves", "es_scores", "es_runs", "es_studies", "es_environments"):
        op.drop_table(table)


def _create_environments() -> None:
    op.create_table(
        "es_environments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_es_environments"),
        sa.UniqueConstraint("hash", name="uq_es_environments_hash"),
    )


def _create_studies() -> None:
    op.create_table(
        "es_studies",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_es_studies"),
    )


def _create_runs() -> None:
    op.create_table(
        "es_runs",
        *_run_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_es_runs"),
        sa.UniqueConstraint("identity", name="uq_es_runs_identity"),
        sa.ForeignKeyConstraint(["study"], ["es_studies.name"], name="fk_es_runs_study"),
        sa.ForeignKeyConstraint(
            ["environment_id"], ["es_environments.id"], name="fk_es_runs_environment_id"
        ),
        sa.CheckConstraint(f"status IN {STATUSES}", name=op.f("ck_es_runs_status")),
        sa.CheckConstraint("phase IN ('tune', 'confirm')", name=op.f("ck_es_runs_phase")),
    )
    op.create_index("ix_es_runs_study_status", "es_runs", ["study", "status"])


def _run_columns() -> list[sa.Column[Any]]:
    kinds: dict[str, tuple[Any, bool]] = {
        "id": (sa.Integer(), False),
        "study": (sa.Text(), False),
        "task": (sa.Text(), False),
        "arm": (sa.Text(), False),
        "phase": (sa.Text(), False),
        "seed": (sa.BigInteger(), False),
        "status": (sa.Text(), False),
        "reason": (sa.Text(), True),
        "config": (sa.JSON(), False),
        "config_hash": (sa.Text(), False),
        "code_hash": (sa.Text(), True),
        "identity": (sa.Text(), False),
        "parameters": (sa.BigInteger(), True),
        "steps": (sa.BigInteger(), False),
        "attempt": (sa.Integer(), False),
        "worker": (sa.Text(), True),
        "lease_until": (sa.String(32), True),
        "created_at": (sa.String(32), False),
        "started_at": (sa.String(32), True),
        "finished_at": (sa.String(32), True),
        "wall_seconds": (sa.Float(), True),
        "cpu_seconds": (sa.Float(), True),
        "peak_bytes": (sa.BigInteger(), True),
        "optuna_study": (sa.Text(), True),
        "optuna_trial": (sa.Integer(), True),
        "environment_id": (sa.Integer(), True),
        "priority": (sa.BigInteger(), False),
        "provenance": (sa.JSON(), False),
    }
    return [sa.Column(name, kind, nullable=null) for name, (kind, null) in kinds.items()]


def _create_scores() -> None:
    op.create_table(
        "es_scores",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("split", sa.Text(), nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("bin", sa.BigInteger()),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("correct", sa.BigInteger()),
        sa.Column("value", sa.Float()),
        sa.Column("status", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_es_scores"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["es_runs.id"], name="fk_es_scores_run_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_es_scores_run_id", "es_scores", ["run_id"])


def _create_curves() -> None:
    op.create_table(
        "es_curves",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.Float()),
        sa.PrimaryKeyConstraint("run_id", "metric", "step", name="pk_es_curves"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["es_runs.id"], name="fk_es_curves_run_id", ondelete="CASCADE"
        ),
    )
