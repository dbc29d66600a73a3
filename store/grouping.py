"""Group scores by what their runs are: one pass in the database, then seeds and mixtures."""

import gc
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from store.config_columns import KINDS, kind_value, whole_value
from store.cutting import Part, Seeds, Values, cut, mean_by_seed
from store.errors import StoreError, nearest
from store.gathering import gathered
from store.options import option_key
from store.rows import ConfigRow
from store.selection import RUN_COLUMNS, SCORE_COLUMNS, Selection, known_keys

CELL = ("study", "task", "arm")
SPLIT_METRIC = ("split", "metric")

Cell = tuple[str, str, str]
Source = tuple[Cell, int]
Key = tuple[tuple[Any, ...], str, str]
GROUPED = {
    name: column
    for name, column in (RUN_COLUMNS | SCORE_COLUMNS).items()
    if name not in ("id", "value", "run_id", "n", "correct")
}


@dataclass(slots=True)
class Group:
    """The values of one group, config by config: whose they are, of which seeds, and themselves."""

    sources: list[Source] = field(default_factory=list[Source])
    seeds: list[Seeds] = field(default_factory=list[Seeds])
    values: list[Values] = field(default_factory=list[Values])

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
        return mean_by_seed(self.seeds, self.values)


def grouped(session: Session, selection: Selection, by: Sequence[str]) -> dict[Key, Group]:
    """Return the groups under what `by` names, the split and the metric, in order.

    Raises:
        StoreError: If something is named that scores cannot be grouped by.
    """
    of_config = {name: _config_values(session, name) for name in by if name not in GROUPED}
    fixed: dict[str, Any] = {
        name: selection.match[name] for name in SPLIT_METRIC if _is_one(selection, name)
    }
    wanted = [name for name in dict.fromkeys([*SPLIT_METRIC, *by]) if name in GROUPED]
    columns = {name: GROUPED[name] for name in wanted if name not in {*CELL, *fixed}}
    names = [*fixed, *CELL, *of_config, *columns]
    own, ends = ([names.index(name) for name in each] for each in (by, SPLIT_METRIC))
    found: dict[Key, Group] = {}
    with _uncollected():
        for source, parts, values in _parts(session, selection, columns):
            cell, config = source
            known = (*fixed.values(), *cell, *(each[config] for each in of_config.values()))
            for part in parts:
                row = (*known, *part.key)
                key = (tuple([row[at] for at in own]), row[ends[0]], row[ends[1]])
                group = found.get(key)
                if group is None:
                    group = found[key] = Group()
                group.sources.append(source)
                group.seeds.append(part.seeds)
                group.values.append(part.of(values))
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


def _parts(
    session: Session, selection: Selection, columns: Mapping[str, ColumnElement[Any]]
) -> Iterator[tuple[Source, list[Part], Values]]:
    """Read each cell and config, how its values are cut into groups, and the values."""

    @lru_cache(maxsize=100)
    def cut_alike(seeds: Any, *keys: Any) -> list[Part]:
        return cut(_array(seeds), [_array(each) for each in keys])

    for row in session.execute(gathered(session, selection, columns)):
        study, task, arm, config, seeds, values, *keys = row
        # Configs share seeds and lengths as a rule, and so the text of these arrays.
        alike = (each if isinstance(each, str) else tuple(each) for each in (seeds, *keys))
        yield ((study, task, arm), config), cut_alike(*alike), tuple(_array(values))


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


def _is_one(selection: Selection, name: str) -> bool:
    """Does a selection ask for a single value, which then need not be read again and again?"""
    return isinstance(selection.match.get(name), str)


def _array(value: Any) -> Any:
    """The values of an array, of which SQLite gives the JSON text."""
    return json.loads(value) if isinstance(value, str) else value


def _config_values(session: Session, name: str) -> dict[int, Any]:
    """What a kind or a dotted key is in each config."""
    if name not in KINDS and name not in known_keys(session):
        known = {*GROUPED, *KINDS, *known_keys(session)}
        raise StoreError(f"scores cannot be grouped by {name!r}; {nearest(name, known)}")
    value = kind_value(name) if name in KINDS else whole_value(name)
    rows = session.execute(select(ConfigRow.id, value))
    return {number: _hashable(found) for number, found in rows}


def _hashable(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _rank(value: Any) -> tuple[bool, bool, Any]:
    """Numbers before text before what lacks."""
    return value is None, isinstance(value, str), 0 if value is None else value
