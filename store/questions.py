"""Questions that are asked of every study: how far, at what cost, what failed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from sqlalchemy import Float, cast, exists, func, select
from sqlalchemy.orm import Session

from store.answers import Cost, Failure, Reach, Summary
from store.config_columns import whole_value
from store.configs import leaves_of
from store.grouping import Cell, Group, Key, grouped
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
    found: list[Reach] = []
    for cell, own in groupby(summarized(session, groups, by), key=_cell):
        steps = [one for one in own if one.group["length"] >= trained.get(cell, 0)]
        if not steps:
            continue
        last = next((one for one in steps if one.mean is None or one.mean < level), steps[-1])
        key = (tuple(last.group.values()), last.split, last.metric)
        above = sum(value >= level for value in groups[key].by_seed())
        found.append(_reach(cell, steps, last, level, above, trained.get(cell)))
    return found


def _reach(
    cell: Cell,
    steps: Sequence[Summary],
    last: Summary,
    level: float,
    above: int,
    trained: int | None,
) -> Reach:
    fell = last.mean is None or last.mean < level
    held = [one.group["length"] for one in steps[: steps.index(last)]]
    if not fell:
        held = [one.group["length"] for one in steps]
    falls_at: int | None = last.group["length"] if fell else None
    if not fell:
        verdict = f"holds to {held[-1]}"
    elif held:
        verdict = f"falls below {level:g} at {falls_at}"
    else:
        verdict = f"below {level:g} {'where trained' if falls_at == trained else 'from the start'}"
    numbers = (last.mean, last.low, last.high, last.seeds)
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
