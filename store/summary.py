"""Means over seeds with their intervals, for scores grouped by what their runs are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Floors:
    """What is known of the accuracy of a blind guess, by task, split and length."""

    tasks: Mapping[int, Any]
    known: Mapping[tuple[Any, str, int], float]

    def of(self, config: int, split: str, length: int) -> float | None:
        """Return the floor of a config."""
        return self.known.get((self.tasks[config], split, length))


def summaries(session: Session, selection: Selection, by: Sequence[str]) -> list[Summary]:
    """Return the mean of each group with its interval over seeds; see `Results.summary`."""
    return summarized(session, grouped(session, selection, by), by)


def summarized(session: Session, groups: Mapping[Key, Group], by: Sequence[str]) -> list[Summary]:
    """Return the mean of each of these groups with its interval over seeds."""
    leaves = leaves_of(session, {one for group in groups.values() for _, one in group.sources})
    mixed = mixtures(groups, by, leaves)
    floors = _floors(session, leaves, by)
    return [
        _summary(key, group, by, _floor(key, group, by, floors), mixed[key])
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


def _floor(key: Key, group: Group, by: Sequence[str], floors: Floors) -> float | None:
    """The accuracy of the best blind guess: the mean over what the group is of."""
    names, split, metric = key
    if metric == "skill":
        return 0.0
    if metric != "accuracy" or not floors.known:
        return None
    length = names[by.index("length")]
    found = [floors.of(config, split, length) for _, config in group.sources]
    known = [floor for floor in found if floor is not None]
    return sum(known) / len(known) if len(known) == len(found) else None


def _floors(
    session: Session, configs: Mapping[int, Mapping[str, Any]], by: Sequence[str]
) -> Floors:
    """The floors, from one run of each config.

    They follow from accuracy a and skill s = (a - floor) / (1 - floor). Configs with the same task
    have the same floors, so one that was solved learns it from one that was not.
    """
    found: dict[tuple[Any, str, int], list[float]] = {}
    tasks: dict[int, Any] = {}
    for config, split, length, floor in session.execute(_measured()) if "length" in by else ():
        tasks = tasks or {number: _task(options) for number, options in configs.items()}
        if config in tasks:
            found.setdefault((tasks[config], split, length), []).append(floor)
    return Floors(tasks, {key: sum(values) / len(values) for key, values in found.items()})


def _measured() -> Select[*tuple[Any, ...]]:
    first = select(func.min(RunRow.id)).where(RunRow.status == "done").group_by(RunRow.config_id)
    accuracy, skill = aliased(ScoreRow), aliased(ScoreRow)
    query = select(
        RunRow.config_id,
        accuracy.split,
        accuracy.length,
        (accuracy.value - skill.value) / (1 - skill.value),
    )
    # The skill comes first: where no run has one, nothing more is looked for.
    query = query.join(skill, skill.run_id == RunRow.id)
    query = query.join(accuracy, accuracy.run_id == skill.run_id + 0)
    same = (skill.split == accuracy.split, skill.length == accuracy.length)
    whole = (accuracy.bin.is_(None), skill.bin.is_(None))
    kinds = (accuracy.metric == "accuracy", skill.metric == "skill", skill.value < MOST_SKILL)
    return query.where(RunRow.id.in_(first), *same, *whole, *kinds)


def _task(options: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    names = sorted(name for name in options if name.split(".")[0] == "task")
    return tuple((name, option_key(options, name)) for name in names)
