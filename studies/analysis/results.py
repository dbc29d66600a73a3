"""What came of the confirming seeds of an arm, without a word about where it is stored."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from store.aggregate import Interval, mean_of, t_interval

if TYPE_CHECKING:
    from store.records import Run, Score
    from studies.analysis.choice import Alternative
    from studies.experiment.plan import Cell, Plan
    from studies.experiment.tune import Chosen
    from studies.training.settings import RunConfig


PENDING = ("planned", "running")

Measure = tuple[str, int]
"""A metric at a length, such as ("skill", 32)."""

SCORES = ("accuracy", "exact", "skill", "nll")
"""What every trained run is scored by at each tested length."""

FLOORS = {"skill": 0.0, "exact": 0.0}
"""What a model that learned nothing scores, by metric, at every length."""

TIMES = ("steps_to_fit",)
"""Metrics that are times: steps until a criterion, which a run may end without."""

CEILINGS = {"skill": 1.0, "exact": 1.0, "accuracy": 1.0}
"""What a perfect model scores."""


@dataclass(frozen=True)
class SeedOutcome:
    """What came of one seed.

    Args:
        status: The status of its run, as in the store.
        values: Its test scores; None where a length could not be asked.
        fit: Its skill at the longest trained length.
        censored: The times among the values at which the run ended, its criterion not reached.
    """

    status: str = "done"
    values: Mapping[Measure, float | None] = field(default_factory=dict[Measure, float | None])
    fit: float | None = None
    censored: frozenset[Measure] = frozenset()


@dataclass(frozen=True)
class Fit:
    """How well an arm learned what it was trained on; a diverged seed has skill 0.

    Args:
        mean: Mean skill at the longest trained length; None where it was not measured.
        solved: How many seeds reach the threshold.
        seeds: How many seeds there are.
        learned: Does the mean reach the threshold?
        sure: Is that so whatever the failed seeds would have reached, from skill 0 to 1?
    """

    mean: float | None
    solved: int
    seeds: int
    learned: bool
    sure: bool = True


@dataclass(frozen=True)
class ArmOutcome:
    """What came of the confirming seeds of one arm on one panel.

    Args:
        seeds: By replicate number.
        longest_trained: The longest trained length; None where the panel has no lengths, and so
            nothing to extrapolate to.
        floors: What a model that learned nothing scores, where that is not 0 in skill and exact.
        reason: Why there are no seeds, where tuning found no setting.
    """

    seeds: Mapping[int, SeedOutcome]
    longest_trained: int | None = None
    floors: Mapping[Measure, float] = field(default_factory=dict[Measure, float])
    reason: str = ""

    def count(self, *statuses: str) -> int:
        """How many seeds have one of these statuses."""
        return sum(one.status in statuses for one in self.seeds.values())

    def fit(self, threshold: float) -> Fit:
        """How well the arm learned what it was trained on."""
        values = [_fit(one) for one in self.seeds.values() if one.status != "failed"]
        known = [value for value in values if value is not None]
        mean = _mean(values) if values else None
        learned = mean is not None and mean >= threshold
        solved = sum(value >= threshold for value in known)
        failed = self.count("failed")
        open_ = [mean_of([*known, *[one] * failed]) for one in (0.0, 1.0)] if failed else []
        sure = len({one >= threshold for one in open_}) < 2
        return Fit(mean, solved, len(self.seeds), learned, sure)

    def value(self, seed: int, metric: str, lengths: tuple[int, ...]) -> float | None:
        """The mean of a metric over lengths of one seed; None where a length has no score.

        A diverged seed scores what a model that learned nothing does.
        """
        found = self.seeds[seed]
        if found.status == "diverged":
            return self.floor(metric, lengths)
        return _mean([found.values.get((metric, length)) for length in lengths])

    def measured(self, metric: str, lengths: tuple[int, ...]) -> list[float]:
        """One value a seed that has one: what a failed run left is none."""
        counted = [seed for seed, one in self.seeds.items() if one.status != "failed"]
        values = (self.value(seed, metric, lengths) for seed in counted)
        return [value for value in values if value is not None]

    def floor(self, metric: str, lengths: tuple[int, ...]) -> float | None:
        """The mean over lengths of what a model scores that learned nothing; None if unknown."""
        return _mean([floor_of((metric, length), self.floors) for length in lengths])


def floor_of(measure: Measure, floors: Mapping[Measure, float]) -> float | None:
    """What a model scores that learned nothing; None if that is not known."""
    return floors.get(measure, FLOORS.get(measure[0]))


def with_diverged(values: Sequence[float], diverged: int, floor: float | None) -> list[float]:
    """What seeds measured, and what those that diverged are counted with, as in a verdict.

    Where no seed measured anything, or no floor is known, there is nothing to count them beside.
    """
    return [*values, *[floor] * diverged] if values and floor is not None else list(values)


def _fit(seed: SeedOutcome) -> float | None:
    return 0.0 if seed.status == "diverged" else seed.fit


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean_of(known) if len(known) == len(values) else None


@dataclass(frozen=True)
class ArmResult:
    """What the confirming runs of one arm on one task say.

    `values` holds the finite values over seeds by (split, metric, length), without what is told
    apart by bin; `scores` holds all of them, by run. What was added to the runs later is in
    neither, since no plan foresaw it: its values are in `later`. `floors` is what a model scores
    that learned nothing, where that is not 0 in skill and exact match.
    """

    cell: "Cell"
    runs: list["Run"]
    chosen: "Chosen | None"
    values: Mapping[tuple[str, str, int], list[float]]
    scores: Mapping[int, list["Score"]] = field(default_factory=dict[int, "list[Score]"])
    alternatives: Sequence["Alternative"] = ()
    later: Mapping[tuple[str, str, int], list[float]] = field(
        default_factory=dict[tuple[str, str, int], list[float]]
    )
    floors: Mapping[Measure, float] = field(default_factory=dict[Measure, float])

    def counted(self, metric: str, length: int, split: str = "test") -> list[float]:
        """The values over seeds; one that diverged counts as one that learned nothing."""
        floor = floor_of((metric, length), self.floors)
        values = self.values.get((split, metric, length), ())
        return with_diverged(values, self.count("diverged"), floor)

    def interval(self, metric: str, length: int, split: str = "test") -> Interval | None:
        """Mean and 95 % t-interval over seeds; None where nothing was measured."""
        values = self.counted(metric, length, split)
        return t_interval(values) if values else None

    def count(self, status: str) -> int:
        """How many of the confirming runs have this status."""
        return sum(run.status == status for run in self.runs)


def gather_results(
    plan: "Plan",
    runs: "Mapping[Cell, list[Run]]",
    scores: Iterable["Score"],
    chosen: "Mapping[Cell, Chosen]",
    others: "Mapping[Cell, Sequence[Alternative]] | None" = None,
) -> list[ArmResult]:
    """Gather the confirming runs of every arm on every panel.

    `others` are the settings that are shown beside the chosen one.
    """
    of_run: dict[int, list[Score]] = defaultdict(list)
    added: dict[int, list[Score]] = defaultdict(list)
    for score in scores:
        (added if score.later else of_run)[score.run_id].append(score)
    gathered: list[ArmResult] = []
    for cell in plan.cells():
        confirming = [run for run in runs[cell] if run.phase == "confirm"]
        own = {run.id: of_run[run.id] for run in confirming}
        later = _values(score for run in confirming for score in added[run.id])
        values = _values(score for of_one in own.values() for score in of_one)
        beside = (others or {}).get(cell, ())
        floors = accuracy_floors(plan.config(cell))
        found = ArmResult(cell, confirming, chosen.get(cell), values, own, beside, later, floors)
        gathered.append(found)
    return gathered


def accuracy_floors(config: "RunConfig") -> dict[Measure, float]:
    """The accuracy at each tested length that skill is measured from."""
    if not config.scored:
        return {}
    from studies.training.settings import task_of

    task = task_of(config.task)
    lengths = config.evaluation.test_lengths
    return {("accuracy", length): task.floors(length).highest for length in lengths}


def _values(scores: Iterable["Score"]) -> dict[tuple[str, str, int], list[float]]:
    """The finite values over seeds by (split, metric, length)."""
    values: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for score in scores:
        if score.value is not None and score.bin is None:
            values[score.split, score.metric, score.length].append(score.value)
    return values


@runtime_checkable
class Averaged(Protocol):
    """An arm with the mean of a metric over its seeds; None where nothing was measured."""

    def interval(self, metric: str, length: int, split: str = "test") -> Interval | None: ...


@dataclass(frozen=True)
class Reach:
    """How far an arm's mean skill stays at or above the threshold.

    `learned` is None where the longest trained length was not measured; `skill` is that at this
    length, else at `fell`. `held` is the longest length up to which it holds, `fell` the first at
    which it does not, `unasked` the first at which nothing was measured, such as beyond a table.
    """

    learned: bool | None
    held: int | None = None
    fell: int | None = None
    skill: float | None = None
    unasked: int | None = None


def reach(arm: Averaged, longest: int, lengths: Iterable[int], threshold: float) -> Reach:
    """Follow the tested lengths upwards from the longest trained one."""
    trained = arm.interval("skill", longest) or arm.interval("skill", longest, "validation")
    if trained is None:
        return Reach(None)
    if trained.mean < threshold:
        return Reach(False, skill=trained.mean)
    held = longest
    for length in sorted(length for length in lengths if length > longest):
        skill = arm.interval("skill", length)
        if skill is None:
            return Reach(True, held, unasked=length)
        if skill.mean < threshold:
            return Reach(True, held, length, skill.mean)
        held = length
    return Reach(True, held)


def outcome_of(plan: "Plan", result: ArmResult) -> ArmOutcome:
    """What came of the confirming seeds of an arm, as statistics take it."""
    config = plan.config(result.cell)
    longest = config.training.train_lengths[1] if config.scored else None
    seeds = {run.seed: _seed(run, result.scores.get(run.id, ()), longest) for run in result.runs}
    reason = "" if result.chosen is None else result.chosen.reason
    return ArmOutcome(seeds, longest, result.floors, reason)


def _seed(run: "Run", scores: Sequence["Score"], longest: int | None) -> SeedOutcome:
    values: dict[Measure, float | None] = {}
    censored = frozenset(
        (score.metric, score.length)
        for score in scores
        if score.metric in TIMES and score.correct == 0
    )
    for split in ("train", "validation", "test"):
        for score in scores:
            if score.split == split:
                values[metric_of(score), score.length] = score.value
    return SeedOutcome(
        run.status,
        values,
        None if longest is None else values.get(("skill", longest)),
        censored,
    )


def metric_of(score: "Score") -> str:
    """The name of what was measured; one of several bins is `metric[bin]`."""
    return score.metric if score.bin is None else f"{score.metric}[{score.bin}]"
