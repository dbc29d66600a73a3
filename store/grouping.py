"""Group scores by what their runs are: one pass in the database, then seeds and mixtures."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from store.config_columns import KINDS, kind_value, whole_value
from store.configs import leaves_of
from store.errors import StoreError, nearest
from store.options import option_key
from store.rows import ConfigRow, RunRow, ScoreRow
from store.selection import RUN_COLUMNS, SCORE_COLUMNS, Selection, known_keys

Cell = tuple[str, str, str]
GROUPED = {
    name: column
    for name, column in (RUN_COLUMNS | SCORE_COLUMNS).items()
    if name not in ("id", "value", "run_id", "n", "correct")
}


@dataclass
class Group:
    """The values of one group: sums by seed, and the cells and configs that they are from."""

    seeds: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    runs: int = 0
    missing: int = 0
    sources: set[tuple[Cell, int, int | None]] = field(
        default_factory=set[tuple[Cell, int, int | None]]
    )

    def add(self, seeds: Sequence[int], values: Sequence[float | None]) -> None:
        """Add one value a run."""
        self.runs += len(values)
        for seed, value in zip(seeds, values, strict=True):
            if value is None:
                self.missing += 1
            else:
                self.seeds.setdefault(seed, []).append(value)

    def by_seed(self) -> list[float]:
        """The mean of each seed, in the order of the seeds."""
        return [sum(self.seeds[seed]) / len(self.seeds[seed]) for seed in sorted(self.seeds)]


Key = tuple[tuple[Any, ...], str, str]
Part = tuple[tuple[tuple[Any, ...], str, str, int | None], Sequence[int], Sequence[float | None]]


def grouped(session: Session, selection: Selection, by: Sequence[str]) -> dict[Key, Group]:
    """Return the groups under what `by` names, the split and the metric, in order.

    Raises:
        StoreError: If something is named that scores cannot be grouped by.
    """
    columns = {name: GROUPED[name] for name in by if name in GROUPED}
    per_config = {name: _config_values(session, name) for name in by if name not in columns}
    found: dict[Key, Group] = {}
    for row in session.execute(_cells(session, selection, columns)):
        cell, config, arrays = (row[0], row[1], row[2]), row[3], [_array(one) for one in row[4:]]
        for (own, split, metric, length), seeds, values in _parts(arrays, "length" in columns):
            names = dict(zip(columns, own, strict=True))
            key = tuple(
                names[name] if name in names else _hashable(per_config[name][config]) for name in by
            )
            group = found.setdefault((key, split, metric), Group())
            group.sources.add((cell, config, length))
            group.add(seeds, values)
    return dict(sorted(found.items(), key=lambda item: [_rank(each) for each in _flat(item[0])]))


def mixtures(
    session: Session, groups: Mapping[Key, Group], by: Sequence[str]
) -> dict[Key, str | None]:
    """Name, for each group, what else differs among its runs: other than what it is grouped by."""
    configs = {config for group in groups.values() for _, config, _ in group.sources}
    leaves = leaves_of(session, configs)
    return {key: ", ".join(_mixed(group, leaves, by)) or None for key, group in groups.items()}


def _mixed(group: Group, leaves: Mapping[int, Mapping[str, Any]], by: Sequence[str]) -> list[str]:
    cells = {cell for cell, _, _ in group.sources}
    fields = [
        name
        for at, name in enumerate(("study", "task", "arm"))
        if name not in by and len({cell[at] for cell in cells}) > 1
    ]
    if len({config for _, config, _ in group.sources}) == 1:
        return fields
    seen: dict[tuple[Cell, str], set[str]] = {}
    for cell, config, _ in group.sources:
        for name in leaves[config]:
            if name not in by:
                seen.setdefault((cell, name), set()).add(option_key(leaves[config], name))
    # What differs between cells alone follows from study, task or arm, which are named already.
    return fields + sorted({name for (_, name), values in seen.items() if len(values) > 1})


def _cells(
    session: Session, selection: Selection, columns: Mapping[str, ColumnElement[Any]]
) -> Select[*tuple[Any, ...]]:
    """Select, for each cell and config, what `_parts` takes as arrays: a value for each score."""
    keys = (RunRow.study, RunRow.task, RunRow.arm, RunRow.config_id)
    told = (
        ScoreRow.split,
        ScoreRow.metric,
        ScoreRow.length,
        RunRow.id,
        RunRow.seed,
        ScoreRow.value,
    )
    array = _aggregate(session)
    query = select(*keys, *(array(column) for column in (*columns.values(), *told)))
    # An index serves the runs config by config, and another the scores of each, if runs come first.
    query = query.join(ScoreRow, ScoreRow.run_id == RunRow.id + 0)
    query = query.where(*selection.conditions(session, SCORE_COLUMNS))
    if "bin" not in columns and "bin" not in selection.match:
        query = query.where(ScoreRow.bin.is_(None))
    return query.group_by(RunRow.config_id, *keys[:3])


def _parts(arrays: Sequence[Sequence[Any]], by_length: bool) -> Iterator[Part]:
    """Cut the scores of one config into groups, with one value for each run.

    Without the length, the value of a run is its mean over lengths, None where one of them lacks:
    it would be the mean of the easier lengths.
    """
    *own, splits, metrics, lengths, runs, seeds, values = arrays
    parts: dict[Any, tuple[list[int], list[int], list[float | None]]] = {}
    places: Any = zip(*own, strict=True) if own else repeat(())
    names = zip(places, splits, metrics, lengths if by_length else repeat(None), strict=False)
    for name, run, seed, value in zip(names, runs, seeds, values, strict=False):
        part = parts.get(name)
        if part is None:
            part = parts[name] = ([], [], [])
        part[0].append(run)
        part[1].append(seed)
        part[2].append(value)
    for name, (of_run, of_seed, each) in parts.items():
        yield (name, of_seed, each) if by_length else (name, *_means(of_run, of_seed, each))


def _means(
    runs: Sequence[int], seeds: Sequence[int], values: Sequence[float | None]
) -> tuple[list[int], list[float | None]]:
    """The mean value of each run, and its seed."""
    found: dict[int, tuple[int, list[float | None]]] = {}
    for run, seed, value in zip(runs, seeds, values, strict=True):
        found.setdefault(run, (seed, []))[1].append(value)
    means = [
        None if None in each else sum(value for value in each if value is not None) / len(each)
        for _, each in found.values()
    ]
    return [seed for seed, _ in found.values()], means


def _aggregate(session: Session) -> Any:
    """The function that gathers values into one JSON array."""
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    return func.json_group_array if is_sqlite else func.json_agg


def _array(value: Any) -> list[Any]:
    return json.loads(value) if isinstance(value, str) else value


def _config_values(session: Session, name: str) -> dict[int, Any]:
    """What a kind or a dotted key is in each config."""
    if name not in KINDS and name not in known_keys(session):
        known = {*GROUPED, *KINDS, *known_keys(session)}
        raise StoreError(f"scores cannot be grouped by {name!r}; {nearest(name, known)}")
    value = kind_value(name) if name in KINDS else whole_value(name)
    return {number: found for number, found in session.execute(select(ConfigRow.id, value))}


def _hashable(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _flat(key: Key) -> Iterator[Any]:
    names, split, metric = key
    yield from (*names, metric, split)


def _rank(value: Any) -> tuple[bool, bool, Any]:
    """Numbers before text before what lacks."""
    return value is None, isinstance(value, str), 0 if value is None else value
