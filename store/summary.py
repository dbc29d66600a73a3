"""Means over seeds with their intervals, for scores grouped by what their runs are."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, aliased

from store.answers import Summary
from store.configs import leaves_of
from store.grouping import Group, Key, grouped, mixtures
from store.intervals import t_interval
from store.options import option_key
from store.rows import RunRow, ScoreRow
from store.selection import Selection

LEVEL = 0.95
METHOD = "t, 95 %"
# Nearer to 1 the floor follows from a difference of nearly equal numbers.
MOST_SKILL = 0.999

Floors = Mapping[tuple[int, str, int], float]


def summaries(session: Session, selection: Selection, by: Sequence[str]) -> list[Summary]:
    """Return the mean of each group with its interval over seeds; see `Results.summary`."""
    return summarized(session, grouped(session, selection, by), by)


def summarized(session: Session, groups: Mapping[Key, Group], by: Sequence[str]) -> list[Summary]:
    """Return the mean of each of these groups with its interval over seeds."""
    leaves = leaves_of(session, {one for group in groups.values() for _, one, _ in group.sources})
    mixed = mixtures(groups, by, leaves)
    floors: Floors = _floors(session, groups, leaves) if "length" in by else {}
    return [
        _summary(key, group, by, _floor(key, group, floors), mixed[key])
        for key, group in groups.items()
    ]


def _summary(
    key: Key, group: Group, by: Sequence[str], floor: float | None, mixed: str | None
) -> Summary:
    names, split, metric = key
    values = group.by_seed()
    interval = t_interval(values, LEVEL) if values else None
    return Summary(
        group=dict(zip(by, names, strict=True)),
        split=split,
        metric=metric,
        mean=interval and interval.mean,
        low=interval and interval.low,
        high=interval and interval.high,
        method=METHOD if interval and interval.low is not None else None,
        seeds=len(values),
        runs=group.runs,
        missing=group.missing,
        floor=floor,
        mixed=mixed,
    )


def _floor(key: Key, group: Group, floors: Floors) -> float | None:
    """The accuracy of the best blind guess: the mean over what the group is of."""
    _, split, metric = key
    if metric == "skill":
        return 0.0
    if metric != "accuracy":
        return None
    found = [
        floors.get((config, split, length))
        for _, config, length in group.sources
        if length is not None
    ]
    known = [floor for floor in found if floor is not None]
    return sum(known) / len(known) if known and len(known) == len(found) else None


def _floors(
    session: Session, groups: Mapping[Key, Group], leaves: Mapping[int, Mapping[str, Any]]
) -> Floors:
    """The floor of each config, split and length, from one run of each config.

    It follows from accuracy a and skill s = (a - floor) / (1 - floor). Configs with the same task
    have the same floors, so one that was solved learns it from one that was not.
    """
    used = {
        (config, split, length)
        for (_, split, metric), group in groups.items()
        if metric == "accuracy"
        for _, config, length in group.sources
    }
    if not used:
        return {}
    tasks = {config: _task(leaves[config]) for config in {config for config, _, _ in used}}
    by_task: dict[tuple[Any, str, int], list[float]] = {}
    for config, split, length, floor in session.execute(_measured()):
        if config in tasks:
            by_task.setdefault((tasks[config], split, length), []).append(floor)
    means = {key: sum(values) / len(values) for key, values in by_task.items()}
    found = {key: means.get((tasks[key[0]], key[1], key[2] or 0)) for key in used}
    return {
        (config, split, length): floor
        for (config, split, length), floor in found.items()
        if floor is not None and length is not None
    }


def _measured() -> Select[*tuple[Any, ...]]:
    first = select(func.min(RunRow.id)).where(RunRow.status == "done").group_by(RunRow.config_id)
    accuracy, skill = aliased(ScoreRow), aliased(ScoreRow)
    query = select(
        RunRow.config_id,
        accuracy.split,
        accuracy.length,
        (accuracy.value - skill.value) / (1 - skill.value),
    )
    query = query.join(accuracy, accuracy.run_id == RunRow.id).join(
        skill, skill.run_id == RunRow.id
    )
    same = (skill.split == accuracy.split, skill.length == accuracy.length)
    whole = (accuracy.bin.is_(None), skill.bin.is_(None))
    kinds = (accuracy.metric == "accuracy", skill.metric == "skill", skill.value < MOST_SKILL)
    return query.where(RunRow.id.in_(first), *same, *whole, *kinds)


def _task(options: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    names = sorted(name for name in options if name.split(".")[0] == "task")
    return tuple((name, option_key(options, name)) for name in names)
