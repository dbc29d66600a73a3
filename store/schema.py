"""What all tables share: the prefix `es_`, named constraints and UTC instants."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, Dialect, MetaData, String, Text, TypeDecorator
from sqlalchemy.orm import DeclarativeBase

PREFIX = "es_"
VERSION_TABLE = "es_alembic_version"
VIEWS = ("results", "bins", "arms", "curves", "failures")


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
    type_annotation_map = {datetime: Instant(), str: Text(), dict[str, Any]: JSON()}


def is_ours(name: str | None, kind: str) -> bool:
    """Tell our tables and views from those of others in the same database."""
    return name is not None and (name.startswith(PREFIX) or (kind == "table" and name in VIEWS))


def now() -> datetime:
    """Return the present instant, in UTC."""
    return datetime.now(UTC)
