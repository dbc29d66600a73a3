"""The schema in words: every table, view and column."""

from typing import Any

from sqlalchemy.dialects import sqlite

from store.database import SCHEMA_VERSION
from store.models import RunRow

VIEWS = {
    "results": "One row for each run, split, length and metric; `options` holds as JSON what "
    "varies within the study.",
    "bins": "The same for the parts of scores: one row for each output index or distance.",
    "arms": "One row for each arm and setting: how many runs ended how, and what they cost.",
    "curves": "The points of training curves, with the run that each belongs to.",
    "failures": "The runs that diverged, failed or do not apply, and why.",
}
COLUMNS = ("table", "column", "type", "null", "key", "about")


def schema_rows() -> list[dict[str, Any]]:
    """Return one row for each table, view and column; those of a table follow it."""
    rows: list[dict[str, Any]] = []
    for mapper in RunRow.registry.mappers:
        table: Any = mapper.local_table
        about = " ".join((mapper.class_.__doc__ or "").split())
        rows.append(_row(table.name, about=about))
        for column in table.columns:
            rows.append(
                _row(
                    table.name,
                    column=column.name,
                    type=column.type.compile(dialect=sqlite.dialect()),
                    null="null" if column.nullable else "",
                    key=_key(column),
                    about=column.doc or "",
                )
            )
    rows.sort(key=lambda row: row["table"])
    return rows + [_row(name, about=f"(view) {about}") for name, about in VIEWS.items()]


def title() -> str:
    """Return what the tables are the tables of."""
    return f"tables of version {SCHEMA_VERSION}"


def _row(table: str, **given: str) -> dict[str, Any]:
    return {**dict.fromkeys(COLUMNS, ""), "table": table, **given}


def _key(column: Any) -> str:
    told = ["primary"] if column.primary_key else []
    told += ["unique"] if column.unique else []
    return ", ".join([*told, *(f"→ {key.target_fullname}" for key in column.foreign_keys)])
