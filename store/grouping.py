"""Group scores by what their runs are: one pass in the database, then seeds and mixtures."""

import gc
import json
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, cast

from sqlalchemy import ColumnElement, Float, Select, case, exists, func, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.orm import Session

from store.aggregate import Held, held, mean_of, t_interval
from store.configs import leaves_of, option_key, varying
from store.errors import require_known
from store.metrics import metric_of
from store.models import ConfigRow, RunRow, ScoreRow
from store.records import FINISHED, MEASURED, Cost, Failure, Reach, Summary
from store.where import (
    KINDS,
    RUN_COLUMNS,
    SCORE_COLUMNS,
    Selection,
    kind_value,
    known_keys,
    whole_value,
)

CELL = ("study", "task", "arm")
SPLIT_METRIC = ("split", "metric")
LEVEL = 0.95
METHOD = "t, 95 %"
SPENT = ("parameters", "steps", "wall_seconds", "cpu_seconds")

Cell = tuple[str, str, str]
Source = tuple[Cell, int]
Key = tuple[tuple[Any, ...], str, str]
Columns = Mapping[str, ColumnElement[Any]]

GROUPED = {
    name: column
    for name, column in (RUN_COLUMNS | SCORE_COLUMNS).items()
    if name not in ("id", "value", "run_id", "n", "correct")
}


@dataclass(slots=True)
class Group:
    """The values of one group, config by config: whose they are, of which seeds, and themselves."""

    sources: list[Source] = field(default_factory=list[Source])
    seeds: list[Sequence[int]] = field(default_factory=list[Sequence[int]])
    values: list[Sequence[float | None]] = field(default_factory=list[Sequence[float | None]])

    @property
    def runs(self) -> int:
        """How many runs there are, a value for each."""
        return sum(map(len, self.values))

    @property
    def missing(self) -> int:
        """How many of them have no finite value."""
        return sum([values.count(None) for values in self.values])

    def by_seed(self) -> list[float]:
        """The mean of each seed that has a value, in the order of the seeds."""
        first = self.seeds[0]
        alike = all([seeds is first or seeds == first for seeds in self.seeds])
        if alike and len(set(first)) == len(first) and not self.missing:
            # As a rule every config was run once with each seed: all are taken at once.
            totals = map(sum, zip(*cast("Any", self.values), strict=True))
            return [each / len(self.values) for _, each in sorted(zip(first, totals, strict=True))]
        found: dict[int, list[float]] = {}
        for seeds, values in zip(self.seeds, self.values, strict=True):
            for seed, value in zip(seeds, values, strict=True):
                if value is not None:
                    found.setdefault(seed, []).append(value)
        return [sum(each) / len(each) for _, each in sorted(found.items())]


def grouped(session: Session, selection: Selection, by: Sequence[str]) -> dict[Key, Group]:
    """Return the groups under what `by` names, the split and the metric, in order."""
    of_config = {name: _config_values(session, name) for name in by if name not in GROUPED}
    # What a single value is asked for need not be read again and again.
    fixed: dict[str, Any] = {
        name: selection.match[name]
        for name in SPLIT_METRIC
        if isinstance(selection.match.get(name), str)
    }
    wanted = [name for name in dict.fromkeys([*SPLIT_METRIC, *by]) if name in GROUPED]
    columns = {name: GROUPED[name] for name in wanted if name not in {*CELL, *fixed}}
    names = [*fixed, *CELL, *of_config, *columns]
    own, ends = ([names.index(name) for name in each] for each in (by, SPLIT_METRIC))
    # Configs share seeds as a rule, and so the text of these arrays.
    seeds_of = lru_cache(maxsize=100)(_array)
    found: dict[Key, Group] = {}
    with _uncollected():
        for cells in session.execute(_gathered(session, selection, columns)):
            study, task, arm, config, seeds, values, *keys = cells
            cell = (study, task, arm)
            row = (*fixed.values(), *cell, *(each[config] for each in of_config.values()), *keys)
            key = (tuple([row[at] for at in own]), row[ends[0]], row[ends[1]])
            group = found.setdefault(key, Group())
            group.sources.append((cell, config))
            group.seeds.append(seeds_of(seeds if isinstance(seeds, str) else tuple(seeds)))
            group.values.append(_array(values))
    return _sorted(found)


@contextmanager
def _uncollected() -> Generator[None]:
    """Put off the search for garbage: all that is read is kept, and nothing refers to itself."""
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()


def _array(value: Any) -> Any:
    """The values of an array, of which SQLite gives the JSON text."""
    return json.loads(value) if isinstance(value, str) else value


def _sorted(found: Mapping[Key, Group]) -> dict[Key, Group]:
    flat = {(*names, metric, split): (names, split, metric) for names, split, metric in found}
    try:
        ordered = sorted(flat)
    except TypeError:
        ordered = sorted(flat, key=lambda each: [_rank(value) for value in each])
    return {flat[each]: found[flat[each]] for each in ordered}


def mixtures(
    groups: Mapping[Key, Group], by: Sequence[str], leaves: Mapping[int, Mapping[str, Any]]
) -> dict[Key, str | None]:
    """Name, for each group, what else differs among its runs: other than what it is grouped by.

    `leaves` are the options of each config that may differ.
    """
    told = {
        config: {name: option_key(flat, name) for name in flat if name not in by}
        for config, flat in leaves.items()
    }
    # Groups of several lengths or metrics are of the same configs.
    known: dict[tuple[Source, ...], str | None] = {}
    found: dict[Key, str | None] = {}
    for key, group in groups.items():
        sources = tuple(group.sources)
        if sources not in known:
            known[sources] = ", ".join(_mixed(sources, told, by)) or None
        found[key] = known[sources]
    return found


def _mixed(
    sources: Sequence[Source], told: Mapping[int, Mapping[str, str]], by: Sequence[str]
) -> list[str]:
    cells = {cell for cell, _ in sources}
    fields = [
        name
        for at, name in enumerate(CELL)
        if name not in by and len({cell[at] for cell in cells}) > 1
    ]
    seen: dict[tuple[Cell, str], set[str]] = {}
    for cell, config in sources if len({config for _, config in sources}) > 1 else ():
        for name, value in told[config].items():
            seen.setdefault((cell, name), set()).add(value)
    # What differs between cells alone follows from study, task or arm, which are named already.
    return fields + sorted({name for (_, name), values in seen.items() if len(values) > 1})


def _config_values(session: Session, name: str) -> dict[int, Any]:
    """What a kind or a dotted key is in each config."""
    if name not in KINDS:
        keys = known_keys(session)
        known = {*GROUPED, *KINDS, *keys}
        require_known(name, known, f"scores cannot be grouped by {name!r}")
    value = kind_value(name) if name in KINDS else whole_value(name)
    return {
        number: json.dumps(found) if isinstance(found, list | dict) else found
        for number, found in session.execute(select(ConfigRow.id, value))
    }


def _rank(value: Any) -> tuple[bool, bool, Any]:
    """Numbers before text before what lacks."""
    return value is None, isinstance(value, str), 0 if value is None else value


def _gathered(session: Session, selection: Selection, columns: Columns) -> Select[*tuple[Any, ...]]:
    """Select, for each cell, config and value of the columns, an array of seeds and one of values.

    With the length among the columns there is a value for each score. Otherwise there is one for
    each run: its mean over lengths, null where one of them lacks, since that would be the mean of
    the easier lengths.
    """
    by_length = "length" in columns
    keys = [column.label(f"key_{at}") for at, column in enumerate(columns.values())]
    cell = (RunRow.study, RunRow.task, RunRow.arm, RunRow.config_id)
    value = ScoreRow.value if by_length else _whole_mean()
    query = select(*cell, RunRow.seed, value.label("value"), *keys)
    # An index serves the runs config by config, and another the scores of each, if runs come first.
    query = query.join(ScoreRow, ScoreRow.run_id == RunRow.id + 0)
    query = query.where(*selection.conditions(session, SCORE_COLUMNS))
    for name in ("bin", "shift"):
        if name not in columns and name not in selection.match:
            query = query.where(SCORE_COLUMNS[name].is_(None))
    if not by_length:
        of_scores = [column for name, column in columns.items() if name in SCORE_COLUMNS]
        query = query.group_by(RunRow.id, *of_scores)
    study, task, arm, config, seed, value, *keys = query.subquery().c
    # SQLite has arrays as JSON text alone.
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    array: Any = func.json_group_array if is_sqlite else func.array_agg
    query = select(study, task, arm, config, array(seed), array(value), *keys)
    return query.group_by(config, study, task, arm, *keys)


def _whole_mean() -> ColumnElement[Any]:
    mean = func.avg(ScoreRow.value)
    finite = func.abs(mean) <= sys.float_info.max
    return case(((func.count() == func.count(ScoreRow.value)) & finite, mean))


def summaries(session: Session, selection: Selection, by: Sequence[str]) -> list[Summary]:
    """Return the mean of each group with its interval over seeds; see `Results.summary`."""
    return summarized(session, grouped(session, selection, by), by)


def summarized(session: Session, groups: Mapping[Key, Group], by: Sequence[str]) -> list[Summary]:
    """Return the mean of each of these groups with its interval over seeds."""
    configs = {config for group in groups.values() for _, config in group.sources}
    mixed = mixtures(groups, by, leaves_of(session, configs))
    stored = {metric_of(metric).floor_in for _, _, metric in groups} - {None}
    floors = _stored_floors(session, stored) if "length" in by and stored else {}
    found: list[Summary] = []
    for key, group in groups.items():
        names, split, metric = key
        values = group.by_seed()
        interval = t_interval(values, LEVEL) if values else None
        found.append(
            Summary(
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
                floor=_floor(key, group, by, floors),
                mixed=mixed[key],
            )
        )
    return found


def _floor(
    key: Key, group: Group, by: Sequence[str], floors: Mapping[tuple[Any, ...], float | None]
) -> float | None:
    """Return what a model scores that learned nothing: the mean over what the group is of."""
    names, split, metric = key
    known_of = metric_of(metric)
    if known_of.floor_in is None:
        return known_of.floor
    if "length" not in by:
        return None
    place = (known_of.floor_in, split, names[by.index("length")])
    found = [floors.get((config, *place)) for _, config in group.sources]
    known = [floor for floor in found if floor is not None]
    return sum(known) / len(known) if len(known) == len(found) else None


def _stored_floors(
    session: Session, metrics: Set[str | None]
) -> dict[tuple[Any, ...], float | None]:
    """Return the floors that are scores themselves, by config, metric, split and length.

    They are those of a task, so one run of a config tells them for all.
    """
    runs = (
        select(RunRow.config_id, func.min(RunRow.id).label("run_id"))
        .where(RunRow.status.in_(MEASURED))
        .group_by(RunRow.config_id)
        .subquery()
    )
    place = (ScoreRow.metric, ScoreRow.split, ScoreRow.length)
    query = select(runs.c.config_id, *place, ScoreRow.value)
    query = query.join(ScoreRow, ScoreRow.run_id == runs.c.run_id)
    query = query.where(ScoreRow.metric.in_(metrics), ScoreRow.value.is_not(None))
    query = query.where(ScoreRow.bin.is_(None), ScoreRow.shift.is_(None))
    return {tuple(row[:4]): row[4] for row in session.execute(query)}


def reaches(session: Session, selection: Selection, level: float) -> list[Reach]:
    """Return how far each arm holds a level; see `Results.below`."""
    by = (*CELL, "length")
    groups = grouped(session, selection, by)
    trained = _longest_trained(session, groups)
    found: list[tuple[Cell, Held, Key]] = []
    for cell, keys in groupby(groups, key=lambda key: key[0][:3]):
        lengths = {length: key for key in keys if (length := key[0][-1]) >= trained.get(cell, 0)}
        if lengths:
            how_far = held(_means(groups, lengths), level)
            ends = (how_far.first_length_below, how_far.last_length_above, min(lengths))
            found.append((cell, how_far, lengths[next(end for end in ends if end is not None)]))
    # Intervals are worked out where an arm falls, or for the last length that it holds.
    last = summarized(session, {key: groups[key] for _, _, key in found}, by)
    return [
        _reach(cell, how_far, summary, level, groups[key], trained.get(cell))
        for (cell, how_far, key), summary in zip(found, last, strict=True)
    ]


def _means(
    groups: Mapping[Key, Group], lengths: Mapping[int, Key]
) -> Iterator[tuple[int, float | None]]:
    """Yield the mean at each length in turn; None where no seed has a value."""
    for length, key in sorted(lengths.items()):
        values = groups[key].by_seed()
        yield length, mean_of(values) if values else None


def _reach(
    cell: Cell, how_far: Held, last: Summary, level: float, group: Group, trained: int | None
) -> Reach:
    holds_to, falls_at = how_far.last_length_above, how_far.first_length_below
    if falls_at is not None and holds_to is None:
        at = "where trained" if falls_at == trained else "from the start"
        verdict = f"below {level:g} {at}"
    elif falls_at is not None:
        verdict = f"falls below {level:g} at {falls_at}"
    else:
        known = [] if holds_to is None else [f"holds to {holds_to}"]
        missing = how_far.unmeasured
        verdict = "; ".join([*known, *([] if missing is None else [f"not measured at {missing}"])])
    numbers = (last.mean, last.low, last.high, last.seeds)
    above = sum(value >= level for value in group.by_seed())
    return Reach(*cell, verdict, holds_to, falls_at, *numbers, above, last.mixed)


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
    cell = (RunRow.study, RunRow.task, RunRow.arm)
    means = (func.avg(sql_cast(getattr(RunRow, name), Float)) for name in SPENT)
    scored = exists().where(ScoreRow.run_id == RunRow.id)
    scored = scored.where(*selection.conditions(session, SCORE_COLUMNS))
    query = select(*cell, *means, func.max(RunRow.peak_bytes)).where(scored)
    spent: dict[Any, dict[str, Any]] = {
        tuple(row[:3]): dict(zip((*SPENT, "peak_bytes"), row[3:], strict=True))
        for row in session.execute(query.where(RunRow.status == "done").group_by(*cell))
    }
    found: list[Cost] = []
    rivals: dict[tuple[str, ...], list[Cost]] = {}
    for one in summaries(session, selection, CELL):
        own = spent.get(tuple(one.group.values()), dict.fromkeys((*SPENT, "peak_bytes")))
        reached = {"value": one.mean, "low": one.low, "high": one.high, "seeds": one.seeds}
        cost = Cost(**one.group, **reached, **own, metric=one.metric, mixed=one.mixed)
        found.append(cost)
        rivals.setdefault((cost.study, cost.task, cost.metric), []).append(cost)
    return [
        replace(cost, efficient=_efficient(cost, rivals[cost.study, cost.task, cost.metric]))
        for cost in found
    ]


def _efficient(one: Cost, rivals: Iterable[Cost]) -> bool:
    """Is no other arm of this study and task both cheaper and better?"""
    value, seconds = one.value, one.wall_seconds
    if value is None or seconds is None:
        return False
    return not any(
        (other.value, other.wall_seconds) != (value, seconds)
        for other in rivals
        if other.value is not None
        and other.wall_seconds is not None
        and other.value >= value
        and other.wall_seconds <= seconds
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
