"""The first version, without a script: `store.database` makes it from `store.models`."""

revision = "0004"
down_revision = None


def upgrade() -> None:
    """Do nothing: no database is of an earlier version."""
