"""Group scores by what their runs are: one pass in the database, then seeds and mixtures."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from store.config_columns import KINDS, kind_value, whole_value
from store.cutting import Seeds, Values, cut
from store.errors import StoreError, nearest
from store.options import option_key
from store.rows import ConfigRow, RunRow, ScoreRow
from store.selection import RUN_COLUMNS, SCORE_COLUMNS, Selection, known_keys

CELL = ("study", "task", "arm")
SPLIT_METRIC = ("split", "metric")

Cell = tuple[str, str, str]
GROUPED = {
    name: column
    for name, column in (RUN_COLUMNS | SCORE_COLUMNS).items()
    if name not in ("id", "value", "run_id", "n", "correct")
}


@dataclass
class Group:
    """The values of one group, config by config, and the cells and configs that they are from."""

    parts: list[tuple[Seeds, Values]] = field(default_factory=list[tuple[Seeds, Values]])
    sources: set[tuple[Cell, int, int | None]] = field(
        default_factory=set[tuple[Cell, int, int | None]]
    )

    @property
    def runs(self) -> int:
        """How many runs there are, a value for each."""
        return sum(len(values) for _, values in self.parts)

    @property
    def missing(self) -> int:
        """How many of them have no finite value."""
        return sum(values.count(None) for _, values in self.parts)

    def by_seed(self) -> list[float]:
        """The mean of each seed that has a value, in the order of the seeds."""
        seeds = self.parts[0][0]
        columns = [values for _, values in self.parts]
        alike = len(set(seeds)) == len(seeds) and all(own == seeds for own, _ in self.parts)
        if alike and not any(None in values for values in columns):
            # As a rule every config was run once with each seed: all are taken at once.
            totals: Iterable[float] = map(sum, zip(*cast("Any", columns), strict=True))
            return [total / len(columns) for _, total in sorted(zip(seeds, totals, strict=True))]
        found: dict[int, list[float]] = {}
        for own, values in self.parts:
            for seed, value in zip(own, values, strict=True):
                if value is not None:
                    found.setdefault(seed, []).append(value)
        return [sum(each) / len(each) for _, each in sorted(found.items())]


Key = tuple[tuple[Any, ...], str, str]


def grouped(session: Session, selection: Selection, by: Sequence[str]) -> dict[Key, Group]:
    """Return the groups under what `by` names, the split and the metric, in order.

    Raises:
        StoreError: If something is named that scores cannot be grouped by.
    """
    of_config = {name: _config_values(session, name) for name in by if name not in GROUPED}
    fixed: dict[str, Any] = {
        name: selection.match[name] for name in SPLIT_METRIC if _is_one(selection, name)
    }
    wanted = dict.fromkeys([*SPLIT_METRIC, "length", *by])
    columns = {name: GROUPED[name] for name in wanted if name not in {*CELL, *fixed, *of_config}}
    # Of a group's names these are of the scores; the others are of their config as a whole.
    places = [(at, list(columns).index(name)) for at, name in enumerate(by) if name in columns]
    ends = {
        name: list(columns).index(name) for name in ("split", "metric", "length") if name in columns
    }
    found: dict[Key, Group] = {}
    last: dict[int, tuple[str, list[Any]]] = {}
    for row in session.execute(_cells(session, selection, columns, "length" in by)):
        cell, config = (row[0], row[1], row[2]), row[3]
        arrays = [_array(value, at, last) for at, value in enumerate(row[4:])]
        known = {**fixed, **dict(zip(CELL, cell, strict=True))}
        known |= {name: _hashable(values[config]) for name, values in of_config.items()}
        whole = [known.get(name) for name in by]
        for own, seeds, values in cut(arrays, ends["length"], "length" in by):
            for at, place in places:
                whole[at] = own[place]
            split, metric = (
                own[ends[name]] if name in ends else fixed[name] for name in SPLIT_METRIC
            )
            group = found.setdefault((tuple(whole), split, metric), Group())
            group.sources.add((cell, config, own[ends["length"]]))
            group.parts.append((seeds, values))
    return dict(sorted(found.items(), key=lambda item: [_rank(each) for each in _flat(item[0])]))


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
    known: dict[frozenset[tuple[Cell, int]], str | None] = {}
    found: dict[Key, str | None] = {}
    for key, group in groups.items():
        sources = frozenset((cell, config) for cell, config, _ in group.sources)
        if sources not in known:
            known[sources] = ", ".join(_mixed(sources, told, by)) or None
        found[key] = known[sources]
    return found


def _mixed(
    sources: frozenset[tuple[Cell, int]], told: Mapping[int, Mapping[str, str]], by: Sequence[str]
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


def _cells(
    session: Session,
    selection: Selection,
    columns: Mapping[str, ColumnElement[Any]],
    by_length: bool,
) -> Select[*tuple[Any, ...]]:
    """Select, for each cell and config, what `cut` takes as arrays: a value for each score."""
    keys = (RunRow.study, RunRow.task, RunRow.arm, RunRow.config_id)
    told = (RunRow.seed if by_length else RunRow.id, RunRow.seed, ScoreRow.value)
    array = _aggregate(session)
    query = select(*keys, *(array(column) for column in (*told[by_length:], *columns.values())))
    # An index serves the runs config by config, and another the scores of each, if runs come first.
    query = query.join(ScoreRow, ScoreRow.run_id == RunRow.id + 0)
    query = query.where(*selection.conditions(session, SCORE_COLUMNS))
    if "bin" not in columns and "bin" not in selection.match:
        query = query.where(ScoreRow.bin.is_(None))
    return query.group_by(RunRow.config_id, *keys[:3])


def _is_one(selection: Selection, name: str) -> bool:
    """Does a selection ask for a single value, which then need not be read again and again?"""
    return isinstance(selection.match.get(name), str)


def _aggregate(session: Session) -> Any:
    """The function that gathers values into one array; SQLite has such as JSON text alone."""
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    return func.json_group_array if is_sqlite else func.array_agg


def _array(value: Any, at: int, last: dict[int, tuple[str, list[Any]]]) -> list[Any]:
    """The values of an array; configs share seeds and lengths, so these are read once for many."""
    if not isinstance(value, str):
        return value
    if at not in last or last[at][0] != value:
        last[at] = (value, json.loads(value))
    return last[at][1]


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
