"""The scores of each config as arrays, by the database: one row for each config and cell."""

import sys
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Select, case, func, select
from sqlalchemy.orm import Session

from store.rows import RunRow, ScoreRow
from store.selection import SCORE_COLUMNS, Selection

Columns = Mapping[str, ColumnElement[Any]]
CELL_COLUMNS = (RunRow.study, RunRow.task, RunRow.arm)


def gathered(session: Session, selection: Selection, columns: Columns) -> Select[*tuple[Any, ...]]:
    """Select study, task, arm, config, then arrays: seeds, values, and each of the columns.

    With the length among them there is a value for each score. Otherwise there is one for each run
    and what the columns tell apart: its mean over lengths, null where one of them lacks, since that
    would be the mean of the easier lengths.
    """
    by_length = "length" in columns
    value = ScoreRow.value if by_length else _whole_mean()
    told = [column.label(f"key_{at}") for at, column in enumerate(columns.values())]
    query = select(*CELL_COLUMNS, RunRow.config_id, RunRow.seed, value.label("value"), *told)
    # An index serves the runs config by config, and another the scores of each, if runs come first.
    query = query.join(ScoreRow, ScoreRow.run_id == RunRow.id + 0)
    query = query.where(*selection.conditions(session, SCORE_COLUMNS))
    if "bin" not in columns and "bin" not in selection.match:
        query = query.where(ScoreRow.bin.is_(None))
    if not by_length:
        of_scores = [column for name, column in columns.items() if name in SCORE_COLUMNS]
        query = query.group_by(RunRow.id, *of_scores)
    study, task, arm, config, *told = query.subquery().c
    key = (config, study, task, arm)
    return select(study, task, arm, config, *map(_aggregate(session), told)).group_by(*key)


def _whole_mean() -> ColumnElement[Any]:
    mean = func.avg(ScoreRow.value)
    finite = func.abs(mean) <= sys.float_info.max
    return case(((func.count() == func.count(ScoreRow.value)) & finite, mean))


def _aggregate(session: Session) -> Any:
    """The function that gathers values into one array; SQLite has such as JSON text alone."""
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    return func.json_group_array if is_sqlite else func.array_agg
