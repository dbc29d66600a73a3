"""Plain records: what goes into the store and what comes out of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    import pandas  # pyright: ignore[reportMissingTypeStubs]


PHASES: tuple[str, ...] = ("tune", "confirm")
FINISHED: tuple[str, ...] = ("done", "diverged", "failed", "not_applicable")
MEASURED: tuple[str, ...] = ("done", "diverged")
"""A run that ended like this has scores: a diverged one those of a model that learned nothing."""
STATUSES: tuple[str, ...] = ("planned", "running", *FINISHED)


@dataclass(frozen=True)
class OfArm:
    """Something about an arm of a study on a task."""

    study: str
    task: str
    arm: str


@dataclass(frozen=True)
class Component:
    """The source of one part behind a run: `code_hash` stands for all of them together.

    `origin` is `module:qualname`, or `path:qualname` for a file that is no module; a module or a
    path alone for a file that parts import. `source_hash` is the fingerprint of the file's code
    (`store.source_code`).
    """

    kind: str
    name: str
    origin: str
    source_hash: str


@dataclass(frozen=True)
class PlannedRun(OfArm):
    """A run to be done: a resolved config with a replicate seed and a phase.

    `identity` is the hash under which a run exists once. `priority` orders the claims, low first.
    `components` are the parts that `code_hash` is made of.
    """

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
    components: tuple[Component, ...] = ()


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
    config options that vary among the selected runs, under their dotted keys. `source` is None for
    what the run itself measured, else says what measured it later, at `created_at`. `shift` names
    what was shifted beside the length, if anything. `imputed` is true for a run that diverged: then
    `value` is that of a model that learned nothing.
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
    created_at: datetime | None = None
    source: str | None = None
    shift: str | None = None
    imputed: bool = False
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def later(self) -> bool:
        """Was it measured later than the run, so that it was not in the plan of its study?"""
        return self.source is not None


@dataclass(frozen=True)
class Curve:
    """One point of a training curve; `value` is None where the number was not finite."""

    run_id: int
    step: int
    metric: str
    value: float | None


@dataclass(frozen=True)
class Best(OfArm):
    """The setting that tuning chose for one arm: see `Choice`, which it is read from.

    `tried` counts the settings, failed ones too. `nll` (nats) is the mean over the `seeds` tuning
    seeds, and `run_id` the first of their runs; `run_id`, `nll` and `config` are None when none was
    chosen. `at_edge` names an option whose chosen value is the lowest or highest of those tried:
    the best may lie beyond. `search` is that of the choice. `options` are those that vary among all
    tune runs looked at.
    """

    run_id: int | None
    nll: float | None
    tried: int
    config: dict[str, Any] | None
    seeds: int = 0
    at_edge: str | None = None
    search: str | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Plan:
    """The resolved plan of a call of a study, once for each plan that differs.

    `hash` is the sha256 of the plan; `created_at` is its first call, `called_at` the last.
    """

    id: int
    study: str
    hash: str
    plan: dict[str, Any]
    created_at: datetime
    called_at: datetime


@dataclass(frozen=True)
class Choice(OfArm):
    """What tuning chose for one arm of a study on a task, and why.

    `search` is a hash of the settings that were tried and of the `rule`. `setting` is None where
    none could be chosen, and `reason` then says why. `nll` (nats) is its mean validation nll over
    the tuning seeds. `tried` has a mapping for each setting: setting, nll, status, runs (their
    ids). `near` are settings that are as good within the tolerance; `edges` are the options whose
    chosen value is the "lowest" or the "highest" tried. `runs` are those with the chosen setting.
    """

    search: str
    rule: str
    setting: dict[str, Any] | None
    nll: float | None = None
    reason: str | None = None
    tried: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    near: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    edges: dict[str, str] = field(default_factory=dict[str, str])
    runs: list[int] = field(default_factory=list[int])
    created_at: datetime | None = None


@dataclass(frozen=True)
class Frozen:
    """The plan of a study as it was frozen, once for each plan that differs.

    `hash` is the sha256 of the protocol. `runs_before` says whether a confirming run had begun when
    it was frozen: what such a protocol announces may have been chosen with results in view.
    """

    study: str
    hash: str
    protocol: dict[str, Any]
    created_at: datetime
    runs_before: bool


@dataclass(frozen=True)
class Model:
    """The saved weights of one run: where the file is, and what it must be to be the same."""

    run_id: int
    path: str
    sha256: str
    size_bytes: int
    created_at: datetime


@dataclass(frozen=True)
class Summary:
    """The mean of one metric over seeds, for the runs that share the names grouped by.

    A seed that occurs in several runs of the group counts once, with their mean. `low` and `high`
    bound the mean as `method` says, None for a single seed. `missing` counts the runs without a
    finite value: they are in no mean. `floor` is what a model scores that learned nothing: for
    accuracy that of the best blind guess, None where it is not known. `mixed` names what else
    differs among the runs: then the mean is of unlike things.
    """

    group: dict[str, Any]
    split: str
    metric: str
    mean: float | None
    low: float | None
    high: float | None
    method: str | None
    seeds: int
    runs: int
    missing: int
    floor: float | None
    mixed: str | None


@dataclass(frozen=True)
class Reach(OfArm):
    """How far an arm holds a level: the last length at which it does, and the first it does not.

    Lengths are taken in order, from the longest that was trained where the configs tell it. The
    first at which no seed has a value ends them, and is neither. `verdict` says it in words;
    `value`, `low`, `high` and `seeds` belong to `falls_at`, or to `holds_to` where it does not
    fall. `seeds_above` counts the seeds at or above the level.
    """

    verdict: str
    holds_to: int | None
    falls_at: int | None
    value: float | None
    low: float | None
    high: float | None
    seeds: int
    seeds_above: int
    mixed: str | None


@dataclass(frozen=True)
class Cost(OfArm):
    """What an arm costs and what it reaches. `value` is the mean of `metric` over seeds.

    Seconds and steps are means over its finished runs, memory is the peak. `efficient` when no
    other arm of the study and task has both fewer seconds and a better value.
    """

    metric: str
    value: float | None
    low: float | None
    high: float | None
    seeds: int
    parameters: float | None
    steps: float | None
    wall_seconds: float | None
    cpu_seconds: float | None
    peak_bytes: int | None
    efficient: bool = False
    mixed: str | None = None


@dataclass(frozen=True)
class Failure(OfArm):
    """Runs of one arm and setting that ended in the same way, of `of` runs that are over.

    `options` are those that vary among the runs looked at.
    """

    phase: str
    status: str
    reason: str | None
    runs: int
    of: int
    first_run: int
    options: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Changed:
    """A part whose source is no longer what runs were done with, or is not found.

    Besides the parts that a config names these are all files that a run's numbers rest on: of the
    encoder's "skeleton", its "builder", the "training", and each "helper" that a plug-in imports.
    `state` is "changed", "missing" when its file is not there, or "unknown" when runs did not note
    their parts or the part has no file. `arms` are those of the runs, `run_ids` the runs.
    """

    kind: str | None
    name: str | None
    state: str
    origin: str | None
    runs: int
    arms: str
    run_ids: list[int]
    source_hash: str | None
    present_hash: str | None


@dataclass(frozen=True)
class Difference:
    """One thing in which two runs differ; None where one of them lacks it."""

    part: str
    name: str
    first: Any
    second: Any


@dataclass(frozen=True)
class Fault:
    """Something that `check` found to be wrong: what, where, and what it means."""

    check: str
    place: str
    problem: str


# Declared, so that a column has one type whether or not the rows at hand hold a missing value.
FRAME_TYPES: dict[Any, str] = {
    bool: "bool",
    int: "int64",
    int | None: "Int64",
    float | None: "float64",
}

# What few readers of a table want; the records have it.
HIDDEN: dict[type, set[str]] = {Score: {"status", "created_at", "source", "shift"}}

T = TypeVar("T")


class Records(tuple[T, ...], Generic[T]):
    """An immutable sequence of records of one kind that can become a table."""

    kind: type[T]
    leading: tuple[str, ...]

    def __new__(
        cls, items: Iterable[T], kind: type[T], leading: Iterable[str] = ()
    ) -> "Records[T]":
        """Hold records of a kind; `leading` names the columns that their `group` brings."""
        self = super().__new__(cls, items)
        self.kind, self.leading = kind, tuple(leading)
        return self

    def __getnewargs__(self) -> tuple[tuple[T, ...], type[T], tuple[str, ...]]:
        return tuple(self), self.kind, self.leading

    def columns(self) -> list[str]:
        """Return the names of the table's columns: the fields, then the options that vary."""
        options = {key for record in self for key in getattr(record, "options", {})}
        names = [*self.leading, *columns_of(self.kind, options)]
        return list(dict.fromkeys(names))

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping per record, all with the keys that `columns` lists."""
        columns = self.columns()
        return [row_of(record, columns) for record in self]

    def frame(self) -> "pandas.DataFrame":
        """Return a pandas table with the columns that `columns` lists."""
        import pandas  # pyright: ignore[reportMissingTypeStubs]

        table: Any = pandas.DataFrame(self.rows(), columns=self.columns())
        declared: Any = fields(cast("Any", self.kind))
        kinds = {one.name: FRAME_TYPES[one.type] for one in declared if one.type in FRAME_TYPES}
        return table.astype(kinds)


def columns_of(kind: type[Any], options: Iterable[str] = ()) -> list[str]:
    """Return the columns of a table of such records: their fields, then the options."""
    hidden = HIDDEN.get(kind, set[str]()) | {"options", "group"}
    names = [each.name for each in fields(kind) if each.name not in hidden]
    return names + sorted(set(options) - set(names))


def row_of(record: object, columns: Iterable[str]) -> dict[str, Any]:
    """Return a record as a row of the table with these columns."""
    own = vars(record)
    beside: dict[str, Any] = {**own.get("options", {}), **own.get("group", {})}
    return {name: own[name] if name in own else beside.get(name) for name in columns}
