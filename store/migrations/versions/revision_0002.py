"""Add frozen protocols, saved models and the parts behind a run; tell when a score was measured."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MEASURED = """
UPDATE es_scores SET created_at = (SELECT finished_at FROM es_runs WHERE es_runs.id = run_id)
"""


def upgrade() -> None:
    """Create three tables and add two columns."""
    _create_protocols()
    _create_models()
    _create_components()
    with op.batch_alter_table("es_scores") as scores:
        scores.add_column(sa.Column("created_at", sa.String(32)))
        scores.add_column(sa.Column("source", sa.Text()))
    op.execute(MEASURED)


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("es_scores") as scores:
        scores.drop_column("source")
        scores.drop_column("created_at")
    for table in ("es_components", "es_models", "es_protocols"):
        op.drop_table(table)


def _create_protocols() -> None:
    op.create_table(
        "es_protocols",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("protocol", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("runs_before", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_es_protocols"),
        sa.UniqueConstraint("study", "hash", name="uq_es_protocols_study"),
        sa.ForeignKeyConstraint(["study"], ["es_studies.name"], name="fk_es_protocols_study"),
    )


def _create_models() -> None:
    op.create_table(
        "es_models",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "path", name="pk_es_models"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["es_runs.id"], name="fk_es_models_run_id", ondelete="CASCADE"
        ),
    )


def _create_components() -> None:
    op.create_table(
        "es_components",
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("source_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("code_hash", "kind", "name", name="pk_es_components"),
    )
