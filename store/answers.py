"""What questions are answered with: plain records, like those of runs and scores."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Summary:
    """The mean of one metric over seeds, for the runs that share the names grouped by.

    A seed that occurs in several runs of the group counts once, with their mean. `low` and `high`
    bound the mean as `method` says, None for a single seed. `missing` counts the runs without a
    finite value: they are in no mean. `floor` is the accuracy of the best blind guess, None where
    it is not known. `mixed` names what else differs among the runs: then the mean is of unlike
    things.
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
class Reach:
    """How far an arm holds a level: the last length at which it does, and the first it does not.

    Lengths are taken in order, from the longest that was trained where the configs tell it.
    `verdict` says it in words; `value`, `low`, `high` and `seeds` belong to `falls_at`, or to the
    last length of all where it never falls. `seeds_above` counts the seeds at or above the level.
    """

    study: str
    task: str
    arm: str
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
class Cost:
    """What an arm costs and what it reaches. `value` is the mean of `metric` over seeds.

    Seconds and steps are means over its finished runs, memory is the peak. `efficient` when no
    other arm of the study and task has both fewer seconds and a better value.
    """

    study: str
    task: str
    arm: str
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
    efficient: bool
    mixed: str | None


@dataclass(frozen=True)
class Failure:
    """Runs of one arm and setting that ended in the same way, of `of` runs that are over.

    `options` are those that vary among the runs looked at.
    """

    study: str
    task: str
    arm: str
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

    Besides the parts that a config names these are the files of the encoder's "skeleton" and of the
    "training" loop. `state` is "changed", "missing" when its file is not there, or "unknown" when
    runs did not note their parts, or what they were trained by, or the part has no file. `arms` are
    those of the runs, `run_ids` the runs.
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
class Problem:
    """Something that `check` found to be wrong: what, where, and what it means."""

    check: str
    place: str
    problem: str
