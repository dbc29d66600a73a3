"""Values as they stand in a filter."""

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, literal

from store.json_values import ListLiteral
from store.schema import Instant


def literal_value(value: object) -> ColumnElement[Any]:
    """Return a value as a bound parameter; a list becomes JSON text, as a JSON column gives it."""
    if isinstance(value, list):
        return ListLiteral(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
    return literal(value)


def instant(text: str) -> ColumnElement[datetime] | None:
    """Return the instant that a text in ISO 8601 names, as a bound parameter; None if none.

    A text may stop at any part: "2026" is the beginning of that year. Without a zone it is in UTC.
    """
    for rest in ("", "-01", "-01-01"):
        try:
            moment = datetime.fromisoformat(text.strip() + rest)
            utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):
            continue
        return literal(utc, Instant())
    return None


def value_kind(value: object) -> str:
    """Return what kind of JSON value this is: text, number, list, mapping or null."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "number"
    return "list" if isinstance(value, list) else "mapping"


def words(kinds: set[str]) -> str:
    """Join kinds of value for a message."""
    return " or ".join(sorted(kinds - {"null"} or kinds))


def storable(text: str) -> bool:
    """Tell whether a database takes this text."""
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text
