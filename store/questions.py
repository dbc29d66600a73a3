"""Questions that are asked of every study: how far, at what cost, what failed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, takewhile
from typing import Any

from sqlalchemy import Float, cast, exists, func, select
from sqlalchemy.orm import Session

from store.answers import Cost, Failure, Reach, Summary
from store.config_columns import whole_value
from store.configs import leaves_of
from store.grouping import Cell, Group, Key, grouped
from store.intervals import mean_of
from store.options import varying
from store.records import FINISHED
from store.rows import ConfigRow, RunRow, ScoreRow
from store.selection import SCORE_COLUMNS, Selection
from store.summary import summaries, summarized

ARM = ("study", "task", "arm")


def reaches(session: Session, selection: Selection, level: float) -> list[Reach]:
    """Return at which length each arm falls below a level; see `Results.below`."""
    by = (*ARM, "length")
    groups = grouped(session, selection, by)
    trained = _longest_trained(session, groups)
    paths = {
        cell: [key for key in keys if _length(key) >= trained.get(cell, 0)]
        for cell, keys in groupby(groups, key=lambda key: key[0][:3])
    }
    held = {cell: list(takewhile(_holds(groups, level), keys)) for cell, keys in paths.items()}
    # Intervals are worked out where a path ends, and nowhere else.
    ends = {cell: keys[: len(held[cell]) + 1][-1] for cell, keys in paths.items() if keys}
    last = summarized(session, {key: groups[key] for key in ends.values()}, by)
    return [
        _reach(cell, [_length(key) for key in held[cell]], one, level, groups[key], trained)
        for (cell, key), one in zip(ends.items(), last, strict=True)
    ]


def _length(key: Key) -> int:
    return key[0][-1]


def _holds(groups: Mapping[Key, Group], level: float) -> Callable[[Key], bool]:
    def is_not_below(key: Key) -> bool:
        values = groups[key].by_seed()
        return bool(values) and mean_of(values) >= level

    return is_not_below


def _reach(
    cell: Cell,
    held: Sequence[int],
    last: Summary,
    level: float,
    group: Group,
    trained: Mapping[Cell, int],
) -> Reach:
    """Say how far an arm held: `last` is where it fell, or the last length where it did not."""
    length = last.group["length"]
    falls_at = None if length in held else length
    if falls_at is None:
        verdict = f"holds to {length}"
    elif held:
        verdict = f"falls below {level:g} at {falls_at}"
    else:
        at = "where trained" if falls_at == trained.get(cell) else "from the start"
        verdict = f"below {level:g} {at}"
    numbers = (last.mean, last.low, last.high, last.seeds)
    above = sum(value >= level for value in group.by_seed())
    return Reach(*cell, verdict, held[-1] if held else None, falls_at, *numbers, above, last.mixed)


def _longest_trained(session: Session, groups: Mapping[Key, Group]) -> dict[Cell, int]:
    """The longest length that each arm was trained on, where its configs say so."""
    lengths = whole_value("training.train_lengths")
    longest: dict[int, int] = {
        number: given[-1]
        for number, given in session.execute(select(ConfigRow.id, lengths))
        if isinstance(given, list) and given and isinstance(given[-1], int)
    }
    found: dict[Cell, int] = {}
    # Groups of several lengths are of the same configs.
    for cell, config in {source for group in groups.values() for source in group.sources}:
        if config in longest:
            found[cell] = max(found.get(cell, 0), longest[config])
    return found


def costs(session: Session, selection: Selection) -> list[Cost]:
    """Return what each arm costs beside what it reaches; see `Results.cost`."""
    spent = (RunRow.parameters, RunRow.steps, RunRow.wall_seconds, RunRow.cpu_seconds)
    scored = exists().where(ScoreRow.run_id == RunRow.id)
    scored = scored.where(*selection.conditions(session, SCORE_COLUMNS))
    query = select(
        *(RunRow.study, RunRow.task, RunRow.arm),
        *(func.avg(cast(column, Float)) for column in spent),
        func.max(RunRow.peak_bytes),
    )
    query = query.where(scored, RunRow.status == "done")
    rows = session.execute(query.group_by(RunRow.study, RunRow.task, RunRow.arm))
    found_rows: list[Any] = list(rows)
    by_cell: dict[Cell, Any] = {(row[0], row[1], row[2]): row[3:] for row in found_rows}
    found = [
        Cost(
            *_cell(one),
            *(one.metric, one.mean, one.low, one.high, one.seeds),
            *by_cell.get(_cell(one), (None,) * 5),
            efficient=False,
            mixed=one.mixed,
        )
        for one in summaries(session, selection, ARM)
    ]
    rivals: dict[tuple[str, ...], list[Cost]] = {}
    for one in found:
        rivals.setdefault((one.study, one.task, one.metric), []).append(one)
    return [
        replace(one, efficient=_efficient(one, rivals[one.study, one.task, one.metric]))
        for one in found
    ]


def _efficient(one: Cost, rivals: Iterable[Cost]) -> bool:
    """Is no other arm of this study and task both cheaper and better?"""
    if one.value is None or one.wall_seconds is None:
        return False
    return not any(
        other.value is not None
        and other.wall_seconds is not None
        and other.value >= one.value
        and other.wall_seconds <= one.wall_seconds
        and (other.value, other.wall_seconds) != (one.value, one.wall_seconds)
        for other in rivals
    )


def failures(session: Session, selection: Selection) -> list[Failure]:
    """Return the runs that diverged, failed or do not apply, by arm, setting and reason."""
    chosen = selection.conditions(session)
    cell = (RunRow.study, RunRow.task, RunRow.arm, RunRow.phase, RunRow.config_id)
    over = select(*cell, func.count()).where(*chosen, RunRow.status.in_(FINISHED)).group_by(*cell)
    of: dict[Any, int] = {tuple(row[:5]): row[5] for row in session.execute(over)}
    told = (RunRow.status, RunRow.reason)
    query = select(*cell, *told, func.count(), func.min(RunRow.id)).where(*chosen)
    query = query.where(RunRow.status.in_(FINISHED[1:])).group_by(*cell, *told)
    rows = session.execute(query.order_by(*cell, *told)).all()
    options = varying(leaves_of(session, {key[4] for key in of}))
    return [
        Failure(*row[:4], row[5], row[6], row[7], of[tuple(row[:5])], row[8], options[row[4]])
        for row in rows
    ]


def _cell(one: Summary) -> Cell:
    return one.group["study"], one.group["task"], one.group["arm"]
