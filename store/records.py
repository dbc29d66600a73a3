"""Plain records: what goes into the store and what comes out of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    import pandas  # pyright: ignore[reportMissingTypeStubs]

PHASES: tuple[str, ...] = ("tune", "confirm")
FINISHED: tuple[str, ...] = ("done", "diverged", "failed", "not_applicable")
STATUSES: tuple[str, ...] = ("planned", "running", *FINISHED)


@dataclass(frozen=True)
class PlannedRun:
    """A run to be done: a resolved config with a replicate seed and a phase.

    `identity` is the hash under which a run exists once. `priority` orders the claims, low first.
    """

    study: str
    task: str
    arm: str
    phase: str
    seed: int
    config: dict[str, Any]
    config_hash: str
    code_hash: str | None
    identity: str
    steps: int
    parameters: int | None = None
    environment_id: int | None = None
    priority: int = 0
    provenance: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Run:
    """One run as stored. Times are UTC instants or seconds, memory is bytes."""

    id: int
    study: str
    task: str
    arm: str
    phase: str
    seed: int
    status: str
    reason: str | None
    config: dict[str, Any]
    config_hash: str
    code_hash: str | None
    parameters: int | None
    steps: int
    attempt: int
    worker: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    wall_seconds: float | None
    cpu_seconds: float | None
    peak_bytes: int | None
    optuna_study: str | None
    optuna_trial: int | None
    environment_id: int | None
    provenance: dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """The right of one worker to do one run; it ends with a finish, a release or a lost lease."""

    run: Run
    attempt: int
    worker: str


@dataclass(frozen=True)
class Score:
    """One measured number of one run.

    `value` is None where the number was not finite, and `status` then says "nan", "inf" or
    "-inf". `bin` is None for a whole, else an output index or a distance. `options` holds the
    config options that vary among the selected runs, under their dotted keys.
    """

    run_id: int
    study: str
    task: str
    arm: str
    phase: str
    seed: int
    split: str
    length: int
    metric: str
    bin: int | None
    n: int
    correct: int | None
    value: float | None
    status: str | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Curve:
    """One point of a training curve; `value` is None where the number was not finite."""

    run_id: int
    step: int
    metric: str
    value: float | None


@dataclass(frozen=True)
class Best:
    """What tuning chose for one arm: the run with the lowest validation nll.

    `tried` counts the settings, failed ones too. `run_id`, `nll` (nats) and `config` are None when
    no setting was finished. `options` are those that vary among all tune runs looked at.
    """

    study: str
    task: str
    arm: str
    run_id: int | None
    nll: float | None
    tried: int
    config: dict[str, Any] | None
    options: dict[str, Any] = field(default_factory=dict[str, Any])


# Declared, so that a column has one type whether or not the rows at hand hold a missing value.
FRAME_TYPES: dict[Any, str] = {
    int: "int64",
    int | None: "Int64",
    float | None: "float64",
}

T = TypeVar("T", Run, Score, Curve, Best)


class Records(tuple[T, ...], Generic[T]):
    """An immutable sequence of records of one kind that can become a table."""

    kind: type[T]

    def __new__(cls, items: Iterable[T], kind: type[T]) -> "Records[T]":
        self = super().__new__(cls, items)
        self.kind = kind
        return self

    def __getnewargs__(self) -> tuple[tuple[T, ...], type[T]]:
        return tuple(self), self.kind

    def columns(self) -> list[str]:
        """Return the names of the table's columns: the fields, then the options that vary."""
        hidden = {"options"} | ({"status"} if self.kind is Score else set[str]())
        names = [each.name for each in fields(self.kind) if each.name not in hidden]
        options = {key for record in self for key in getattr(record, "options", {})}
        return names + sorted(options - set(names))

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping per record, all with the keys that `columns` lists."""
        columns = self._table()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def frame(self) -> "pandas.DataFrame":
        """Return a pandas table with the columns that `columns` lists."""
        import pandas  # pyright: ignore[reportMissingTypeStubs]

        table: Any = pandas.DataFrame(self._table())
        kinds: dict[str, str] = {
            each.name: FRAME_TYPES[each.type]
            for each in fields(self.kind)
            if each.type in FRAME_TYPES
        }
        return table.astype(kinds)

    def _table(self) -> dict[str, list[Any]]:
        own = {each.name for each in fields(self.kind)}
        return {
            name: [
                getattr(each, name) if name in own else getattr(each, "options", {}).get(name)
                for each in self
            ]
            for name in self.columns()
        }


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the leaves of a nested mapping under dotted keys; lists are leaves."""
    leaves: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            inner = cast("dict[str, Any]", value)
            leaves.update(flatten(inner, f"{prefix}{key}."))
        else:
            leaves[prefix + key] = value
    return leaves


def varying(configs: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return, for each id, the options that are not the same in every one of the configs.

    An option that some configs lack varies, and is None where it lacks.
    """
    leaves = {key: flatten(config) for key, config in configs.items()}
    names = sorted({name for flat in leaves.values() for name in flat})
    kept = [name for name in names if len({_key(flat, name) for flat in leaves.values()}) > 1]
    return {key: {name: flat.get(name) for name in kept} for key, flat in leaves.items()}


def _key(flat: Mapping[str, Any], name: str) -> str:
    # By type as well, so that 1, 1.0 and True stay three values.
    return f"{type(flat[name]).__name__}:{flat[name]!r}" if name in flat else "absent"
