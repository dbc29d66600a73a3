"""Store each config once, tell superseded runs, and read by index; readable views.

There is no way back but the copy that an upgrade keeps.
"""

import hashlib
import json
from typing import Any, cast

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

MEASURED = """
SELECT r.id AS run_id, r.study, r.task, r.arm, r.phase, r.seed, r.status,
       r.superseded, s.split, s.length, s.metric, s.bin, s.n, s.correct, s.value,
       s.status AS value_status, c.options, r.parameters, r.steps, r.wall_seconds,
       r.started_at, r.finished_at, s.source, r.config_hash, r.code_hash, c.config
FROM es_runs AS r
JOIN es_configs AS c ON c.id = r.config_id
JOIN es_scores AS s ON s.run_id = r.id
"""

ARMS = """
CREATE VIEW arms AS
SELECT r.study, r.task, r.arm, r.phase, r.superseded, c.options,
       count(*) AS runs,
       sum(CASE WHEN r.status = 'done' THEN 1 ELSE 0 END) AS done,
       sum(CASE WHEN r.status = 'diverged' THEN 1 ELSE 0 END) AS diverged,
       sum(CASE WHEN r.status = 'failed' THEN 1 ELSE 0 END) AS failed,
       max(r.parameters) AS parameters, avg(r.wall_seconds) AS mean_wall_seconds,
       max(r.peak_bytes) AS peak_bytes, r.config_hash
FROM es_runs AS r JOIN es_configs AS c ON c.id = r.config_id
GROUP BY r.study, r.task, r.arm, r.phase, r.superseded, r.config_hash, c.id
"""

CURVES = """
CREATE VIEW curves AS
SELECT p.run_id, r.study, r.task, r.arm, r.phase, r.seed, p.metric, p.step, p.value
FROM es_curves AS p JOIN es_runs AS r ON r.id = p.run_id
"""

FAILURES = """
CREATE VIEW failures AS
SELECT r.id AS run_id, r.study, r.task, r.arm, r.phase, r.seed, r.status, r.reason,
       c.options, r.attempt, r.worker, r.finished_at
FROM es_runs AS r JOIN es_configs AS c ON c.id = r.config_id
WHERE r.status IN ('diverged', 'failed', 'not_applicable')
"""


def upgrade() -> None:
    """Move the configs, add what is new, make the views."""
    # SQLite alters a table by making another; a server refuses while others refer to it.
    anew = "always" if op.get_bind().dialect.name == "sqlite" else "never"
    op.execute("DROP VIEW results")
    _create_configs()
    with op.batch_alter_table("es_studies") as studies:
        studies.add_column(sa.Column("constants", sa.JSON()))
    with op.batch_alter_table("es_runs") as runs:
        runs.add_column(sa.Column("config_id", sa.Integer()))
        runs.add_column(sa.Column("called_at", sa.String(32)))
        superseded = sa.Column("superseded", sa.Boolean(), server_default=sa.false())
        runs.add_column(superseded)
    _move_configs()
    kept = {"sqlite_autoincrement": True}
    with op.batch_alter_table("es_runs", recreate=anew, table_kwargs=kept) as runs:
        runs.drop_column("config")
        runs.alter_column("config_id", existing_type=sa.Integer(), nullable=False)
        runs.alter_column(
            "superseded", existing_type=sa.Boolean(), nullable=False, server_default=None
        )
        runs.create_foreign_key("fk_es_runs_config_id", "es_configs", ["config_id"], ["id"])
    _index()
    # The run says when it was finished; 32 characters in every score would repeat it.
    op.execute("UPDATE es_scores SET created_at = NULL WHERE source IS NULL")
    with op.batch_alter_table(
        "es_curves", recreate=anew, table_kwargs={"sqlite_with_rowid": False}
    ) as curves:
        curves.alter_column("value", existing_type=sa.Float(), existing_nullable=True)
    _create_views()


def _create_configs() -> None:
    op.create_table(
        "es_configs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_es_configs"),
        sa.UniqueConstraint("study", "hash", name="uq_es_configs_study"),
        sa.ForeignKeyConstraint(["study"], ["es_studies.name"], name="fk_es_configs_study"),
    )


def _move_configs() -> None:
    """Put each distinct config of a study into one row; runs refer to it."""
    connection = op.get_bind()
    runs = sa.table("es_runs", *map(sa.column, ("id", "study", "config_id")), _json("config"))
    found: dict[str, dict[str, dict[str, Any]]] = {}
    of_run: list[dict[str, Any]] = []
    for number, study, config in connection.execute(
        sa.select(runs.c.id, runs.c.study, runs.c.config)
    ):
        digest = _fingerprint(config)
        found.setdefault(study, {})[digest] = config
        of_run.append({"run": number, "study": study, "digest": digest})
    ids: dict[tuple[str, str], int] = {}
    for study, configs in found.items():
        _insert_configs(connection, study, configs, ids)
    change = sa.update(runs).where(runs.c.id == sa.bindparam("run"))
    known = [{"run": one["run"], "new": ids[one["study"], one["digest"]]} for one in of_run]
    if known:
        connection.execute(change.values(config_id=sa.bindparam("new")), known)


def _insert_configs(
    connection: sa.Connection,
    study: str,
    configs: dict[str, dict[str, Any]],
    ids: dict[tuple[str, str], int],
) -> None:
    leaves = {digest: _flatten(config) for digest, config in configs.items()}
    names = sorted({name for flat in leaves.values() for name in flat})
    vary = [name for name in names if len({_key(flat, name) for flat in leaves.values()}) > 1]
    table = sa.table(
        "es_configs", *map(sa.column, ("id", "study", "hash")), _json("config"), _json("options")
    )
    for digest, config in configs.items():
        options = {name: leaves[digest].get(name) for name in vary}
        row = {"study": study, "hash": digest, "config": config, "options": options}
        made = connection.execute(sa.insert(table).values(row).returning(table.c.id))
        ids[study, digest] = made.scalar_one()
    first = next(iter(leaves.values()))
    constants = {name: value for name, value in first.items() if name not in vary}
    studies = sa.table("es_studies", sa.column("name"), _json("constants"))
    connection.execute(
        sa.update(studies).where(studies.c.name == study).values(constants=constants)
    )


def _json(name: str) -> sa.ColumnClause[Any]:
    return sa.column(name, sa.JSON())


def _fingerprint(config: dict[str, Any]) -> str:
    text = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _flatten(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            inner = cast("dict[str, Any]", value)
            leaves.update(_flatten(inner, f"{prefix}{key}."))
        else:
            leaves[prefix + key] = value
    return leaves


def _key(flat: dict[str, Any], name: str) -> str:
    return f"{type(flat[name]).__name__}:{flat[name]!r}" if name in flat else "absent"


def _index() -> None:
    cell, rest = ["study", "task", "arm"], ["phase", "status", "superseded", "seed"]
    op.create_index("ix_es_runs_cell", "es_runs", [*cell, "config_id", *rest])
    op.create_index("ix_es_runs_config_id", "es_runs", ["config_id", *cell, *rest])
    op.drop_index("ix_es_scores_run_id", "es_scores")
    key = ["run_id", "split", "metric", "length", "bin", "value"]
    op.create_index("ix_es_scores_key", "es_scores", key)


def _create_views() -> None:
    op.execute(f"CREATE VIEW results AS {MEASURED} WHERE s.bin IS NULL")
    op.execute(f"CREATE VIEW bins AS {MEASURED} WHERE s.bin IS NOT NULL")
    for view in (ARMS, CURVES, FAILURES):
        op.execute(view)
