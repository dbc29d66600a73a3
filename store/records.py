"""Plain records: what goes into the store and what comes out of it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

PHASES: tuple[str, ...] = ("tune", "confirm")
FINISHED: tuple[str, ...] = ("done", "diverged", "failed", "not_applicable")
STATUSES: tuple[str, ...] = ("planned", "running", *FINISHED)


@dataclass(frozen=True)
class Component:
    """The source of one part behind a run: `code_hash` stands for all of them together.

    `origin` is `module:qualname`, or `path:qualname` for a file that is no module. `source_hash`
    is the sha256 of the file that defines the part.
    """

    kind: str
    name: str
    origin: str
    source_hash: str


@dataclass(frozen=True)
class PlannedRun:
    """A run to be done: a resolved config with a replicate seed and a phase.

    `identity` is the hash under which a run exists once. `priority` orders the claims, low first.
    `components` are the parts that `code_hash` is made of.
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
    what the run itself measured, else says what measured it later, at `created_at`.
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
class Best:
    """What a search chose for one arm: the setting of lowest validation nll over its seeds.

    A search is what one arm tried under settings that are else the same. `tried` counts its
    settings, failed ones too. `nll` (nats) is the mean over the `seeds` tuning seeds, and `run_id`
    the first of their runs; `run_id`, `nll` and `config` are None when no setting was finished.
    `at_edge` names an option whose chosen value is the lowest or highest of those tried: the best
    may lie beyond. `options` are those that vary among all tune runs looked at.
    """

    study: str
    task: str
    arm: str
    run_id: int | None
    nll: float | None
    tried: int
    config: dict[str, Any] | None
    seeds: int = 0
    at_edge: str | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])


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
