"""Run by alembic: bring our tables, and no others, to a revision."""

from alembic import context
from sqlalchemy import Connection

from store.models import VERSION_TABLE, Table, is_ours


def migrate(connection: Connection) -> None:
    """Run the scripts inside the transaction that the caller has begun."""
    context.configure(
        connection=connection,
        target_metadata=Table.metadata,
        version_table=VERSION_TABLE,
        # Others keep their tables in the same database: alembic would drop what it does not know.
        include_name=lambda name, kind, parents: kind != "table" or is_ours(name, kind),
        # SQLite alters a table by copying it.
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()


migrate(context.config.attributes["connection"])
