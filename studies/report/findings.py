"""What a study found, in the form that its report prints: plain numbers, seed by seed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from store.aggregate import Interval, t_interval, wilson
from studies.analysis.results import Measure, floor_of
from studies.experiment.freeze import SELECTION

if TYPE_CHECKING:
    from store.records import Run
    from studies.analysis.search import Point
    from studies.analysis.summaries import Overall
    from studies.experiment.study import Line
    from studies.statistics import Verdict
    from studies.tasks.task import Floors


@dataclass(frozen=True)
class FitTime:
    """The step at which a seed met the criterion of fit, or ended without having met it."""

    steps: float
    met: bool


@dataclass(frozen=True)
class Seed:
    """One confirming run: what it measured, by (split, metric, length).

    `curves` holds its training curves: by metric, (step, value) in the order of the steps;
    `bins` what was measured on the test sets by bin, such as a layer: by (metric, length);
    `fit` how soon it fitted, where that was looked at.
    """

    run: "Run"
    values: Mapping[tuple[str, str, int], float]
    curves: Mapping[str, list[tuple[int, float]]]
    bins: Mapping[tuple[str, int], list[tuple[int, float]]] = field(
        default_factory=dict[tuple[str, int], "list[tuple[int, float]]"]
    )
    fit: FitTime | None = None

    @property
    def ended(self) -> bool:
        """Is it over, one way or the other?"""
        return self.run.status not in ("planned", "running")

    @property
    def ended_well(self) -> bool:
        """Did it end with numbers, rather than with a reason?"""
        return self.run.status == "done"


@dataclass(frozen=True)
class Setting:
    """One setting that was tried in tuning, with its mean validation nll (nats) if it has one."""

    label: str
    nll: float | None
    chosen: bool
    at_edge: bool
    note: str = ""


@dataclass(frozen=True)
class Arm:
    """One arm on one panel.

    `floors` is what a model scores that learned nothing, where that is not 0 in skill and exact
    match; `sentence` says what became of the arm.
    """

    name: str
    seeds: list[Seed]
    tuning: list[Setting] = field(default_factory=list[Setting])
    floors: Mapping[Measure, float] = field(default_factory=dict[Measure, float])
    sentence: str = ""

    def values(self, metric: str, length: int, split: str = "test") -> dict[int, float]:
        """The value of each seed that measured it; one that diverged counts with the floor."""
        key, floor = (split, metric, length), floor_of((metric, length), self.floors)
        found = {seed.run.seed: seed.values.get(key) for seed in self.seeds}
        if floor is not None and any(value is not None for value in found.values()):
            found |= {seed.run.seed: floor for seed in self.seeds if seed.run.status == "diverged"}
        return {seed: value for seed, value in found.items() if value is not None}

    def interval(self, metric: str, length: int, split: str = "test") -> Interval | None:
        """Mean and 95 % t-interval over seeds; None where nothing was measured."""
        values = list(self.values(metric, length, split).values())
        return t_interval(values) if values else None

    def solved(self, length: int, threshold: float) -> Interval | None:
        """Of the seeds that are over, the share whose skill reaches the threshold, by Wilson.

        A seed that failed is one that did not solve it.
        """
        over = sum(seed.ended for seed in self.seeds)
        reached = sum(value >= threshold for value in self.values("skill", length).values())
        return wilson(reached, over) if over else None

    def fits(self, met: bool = True) -> list[float]:
        """The steps of the seeds that met the criterion of fit, or of those that did not."""
        times = [seed.fit for seed in self.seeds if seed.fit is not None]
        return sorted(one.steps for one in times if one.met == met)

    @property
    def median_fit(self) -> float | None:
        """The step by which half of the seeds met the criterion of fit; None if more never did.

        That of Kaplan and Meier: a seed that ended without counts as one that takes longer, one
        that diverged as one that never meets it; of one that failed nothing is known.
        """
        from studies.analysis.survival import Time, kaplan_meier

        known = [seed.fit for seed in self.seeds if seed.fit and seed.run.status != "diverged"]
        if not known:
            return None
        end = max(one.steps for one in known)
        never = [Time(end, reached=False)] * self.count("diverged")
        return kaplan_meier([*(Time(one.steps, one.met) for one in known), *never]).median

    @property
    def lost(self) -> list[Seed]:
        """The seeds that ended without numbers."""
        return [seed for seed in self.seeds if seed.ended and not seed.ended_well]

    def count(self, status: str) -> int:
        """How many of its runs have this status."""
        return sum(seed.run.status == status for seed in self.seeds)


@dataclass(frozen=True)
class Panel:
    """One task of a study, with all arms.

    `later` are the arms with nothing but the scores that were added to them after the study;
    `titles` are the metrics that a study shows; `fit` says what was waited for in words, if
    training had a criterion of fit.
    """

    label: str
    task: str
    trained: tuple[int, int]
    steps: int
    lengths: list[int]
    floors: Mapping[int, "Floors"]
    arms: list[Arm]
    later: list[Arm] = field(default_factory=list[Arm])
    titles: Mapping[str, str] = field(default_factory=dict[str, str])
    fit: str = ""

    @property
    def later_lengths(self) -> list[int]:
        """The lengths at which skill was measured after the study."""
        keys = {key for arm in self.later for seed in arm.seeds for key in seed.values}
        return sorted(one for split, metric, one in keys if (split, metric) == ("test", "skill"))

    @property
    def metrics(self) -> list[str]:
        """What was measured on the test sets and is shown."""
        seeds = (seed for arm in self.arms for seed in arm.seeds)
        return self._shown(m for seed in seeds for split, m, _ in seed.values if split == "test")

    @property
    def binned(self) -> list[str]:
        """What was measured there by bin and is shown."""
        seeds = (seed for arm in self.arms for seed in arm.seeds)
        return self._shown(metric for seed in seeds for metric, _ in seed.bins)

    def _shown(self, measured: Iterable[str]) -> list[str]:
        """In the order of the study, or else of measuring."""
        found = dict.fromkeys(measured)
        return [metric for metric in self.titles or found if metric in found]

    @property
    def has_skill(self) -> bool:
        """Is it a task that is trained on, with floors from which skill is measured?"""
        return bool(self.floors) and not self.titles

    @property
    def measured(self) -> list[tuple[str, int]]:
        """Split and length of what is drawn: validation at trained lengths, then the test sets."""
        if not self.has_skill:
            return [("test", length) for length in self.lengths]
        own = {
            length
            for arm in self.arms
            for seed in arm.seeds
            for split, metric, length in seed.values
            if split == "validation" and metric == "skill"
        }
        inside = sorted(own - set(self.lengths))
        places = [
            *(("validation", one) for one in inside),
            *(("test", one) for one in self.lengths),
        ]
        return sorted(places, key=lambda place: place[1])

    @property
    def caption(self) -> str:
        """What the figure of all metrics shows."""
        if len(self.lengths) == 1:
            return f"Every metric at length {self.lengths[0]}. Dots: every seed; lines: their mean."
        return "Every metric against length. Thin: every seed; thick: their mean."

    def floor(self, length: int) -> float:
        """The accuracy at which skill is 0."""
        return self.floors[length].highest


@dataclass(frozen=True)
class Front:
    """What a search found.

    Args:
        objectives: What it was after, each with "maximize" or "minimize".
        points: Every arm that has a value for each.
        best: Those that no other one beats in every objective.
    """

    objectives: Mapping[str, str]
    points: "list[Point]"
    best: "list[Point]"


@dataclass(frozen=True)
class Findings:
    """Everything that a report says."""

    study: str
    question: str
    about: str
    panels: list[Panel]
    verdicts: list["Verdict"]
    threshold: float
    differences: list[tuple[str, Mapping[str, Any]]]
    hyperparameters: Mapping[str, Any]
    provenance: Mapping[str, Any]
    command: str
    sources: list[str]
    selection: str = SELECTION["lowest"]
    lines: list["Line"] = field(default_factory=list["Line"])
    overall: list["Overall"] = field(default_factory=list["Overall"])
    front: Front | None = None
