"""The history of the tables, for alembic."""
