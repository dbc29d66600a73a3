"""The outcome of a study: its tasks, arms and seeds, in the one form that every surface reads.

`studies.analysis.gather` makes it from a plan and the stored rows. A seed that diverged has the
stored scores of a model that learned nothing; one that failed has none, and is counted beside.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from store.aggregate import Interval, held, mean_of, t_interval, wilson
from store.metrics import FLOOR, metric_of
from studies.analysis.survival import Time, kaplan_meier
from studies.experiment.tune import Setting, in_words

if TYPE_CHECKING:
    from store.records import Choice, Run
    from studies.experiment.plan import Plan

PENDING = ("planned", "running")
FIT = "steps_to_fit"
"""The time until the criterion of fit of a training is met."""

Measure = tuple[str, int]
"""A metric at a length, such as ("skill", 32)."""

Place = tuple[str, str, int]
"""A split, a metric and a length, such as ("test", "skill", 32)."""

Curve = list[tuple[int, float]]
"""Values by step, or by bin."""


@dataclass(frozen=True)
class Seed:
    """One final run of an arm, and what it measured.

    Args:
        status: The status of its run, as in the store.
        values: Its scores: on the test set where there is one, else on validation, else in
            training; None where a length could not be asked. One of several bins is a metric of
            its own, `metric[bin]`.
        fit: Its skill at the longest trained length.
        censored: The times among the values at which the run ended, its criterion not reached.
        run: As it is stored.
        places: Its finite scores by split, metric and length, without those of bins.
        bins: What was measured on the test sets by bin, such as a layer.
        curves: Its training curves, by metric.
        later: What was measured after the study, and is in no verdict.
    """

    status: str = "done"
    values: Mapping[Measure, float | None] = field(default_factory=dict[Measure, float | None])
    fit: float | None = None
    censored: frozenset[Measure] = frozenset()
    run: "Run | None" = None
    places: Mapping[Place, float] = field(default_factory=dict[Place, float])
    bins: Mapping[Measure, Curve] = field(default_factory=dict[Measure, Curve])
    curves: Mapping[str, Curve] = field(default_factory=dict[str, Curve])
    later: Mapping[Place, float] = field(default_factory=dict[Place, float])

    @property
    def ended(self) -> bool:
        """Whether the run is over, one way or the other."""
        return self.status not in PENDING

    @property
    def lost(self) -> bool:
        """Whether the run ended without numbers of its own."""
        return self.ended and self.status != "done"

    @property
    def reason(self) -> str:
        """The reason why it ended without numbers, or ""."""
        return "" if self.run is None else self.run.reason or ""

    @property
    def time(self) -> Time | None:
        """The time at which it met the criterion of fit or ended without; None if not measured."""
        for measure, value in self.values.items():
            if measure[0] == FIT and value is not None:
                return Time(value, measure not in self.censored)
        return None


@dataclass(frozen=True)
class Fit:
    """The fit of an arm to what it was trained on.

    `mean` is the mean skill at the longest trained length, None where it was not measured; `solved`
    seeds of all `seeds` reach the threshold, and `learned` tells whether the mean does: `sure` if
    whatever the failed seeds would have reached, from skill 0 to 1.
    """

    mean: float | None
    solved: int
    seeds: int
    learned: bool
    sure: bool = True


@dataclass(frozen=True)
class Reach:
    """The reach of an arm: how far its mean skill stays at or above the threshold.

    Args:
        learned: Does it at the longest trained length? None where that was not measured.
        last_length_above: The longest length up to which it does.
        first_length_below: The first length at which it does not.
        skill: The mean at that length; of an arm that did not learn, at the longest trained one.
        unmeasured: The first length at which nothing was measured, such as beyond a table.
    """

    learned: bool | None
    last_length_above: int | None = None
    first_length_below: int | None = None
    skill: float | None = None
    unmeasured: int | None = None


@dataclass(frozen=True)
class Tried:
    """A setting that was tried in tuning, in words, with its mean validation nll (nats).

    `at_edge` tells that one of its values is the lowest or highest tried; `note` why it has no nll,
    or that it is as good as the one chosen.
    """

    label: str
    nll: float | None
    chosen: bool = False
    at_edge: bool = False
    note: str = ""


@dataclass(frozen=True)
class Alternative:
    """A setting with the mean test skill of its tuning runs at each length beyond training.

    `roles` say why it is shown; the chosen setting is among them, to compare with.
    """

    setting: Setting
    roles: tuple[str, ...]
    skills: Mapping[int, float]

    def __str__(self) -> str:
        skills = ", ".join(f"{skill:z.2f} at {length}" for length, skill in self.skills.items())
        return f"{in_words(self.setting)}: {' and '.join(self.roles)}; skill {skills}"


@dataclass(frozen=True)
class Arm:
    """One arm on one task: its final runs, and the setting that tuning chose for them.

    Args:
        seeds: By replicate number.
        longest_trained: The longest trained length; None where nothing is trained and scored, and
            so nothing is there to extrapolate to.
        reason: Why there are no seeds, where tuning found no setting.
        name: Its name.
        lengths: The tested lengths.
        choice: What tuning chose; None where nothing was tuned.
        tuning: What tuning tried, setting by setting.
        alternatives: Settings that are shown beside the chosen one.
        remark: What belongs beside every result of it, or "".
    """

    seeds: Mapping[int, Seed]
    longest_trained: int | None = None
    reason: str = ""
    name: str = ""
    lengths: tuple[int, ...] = ()
    choice: "Choice | None" = None
    tuning: Sequence[Tried] = ()
    alternatives: Sequence[Alternative] = ()
    remark: str = ""

    @property
    def runs(self) -> list["Run"]:
        """Its final runs, as they are stored."""
        return [one.run for one in self.seeds.values() if one.run is not None]

    @property
    def beyond(self) -> tuple[int, ...]:
        """The tested lengths beyond the trained ones."""
        longest = self.longest_trained
        return () if longest is None else tuple(one for one in self.lengths if one > longest)

    def count(self, *statuses: str) -> int:
        """Count the seeds with one of these statuses."""
        return sum(one.status in statuses for one in self.seeds.values())

    @property
    def has_skill(self) -> bool:
        """Whether any of its seeds has a skill."""
        return any(metric == "skill" for one in self.seeds.values() for metric, _ in one.values)

    @property
    def lost(self) -> dict[int, Seed]:
        """The seeds that ended without numbers of their own."""
        return {number: one for number, one in self.seeds.items() if one.lost}

    def value(self, seed: int, metric: str, lengths: Sequence[int]) -> float | None:
        """Return the mean of a metric over lengths of a seed; None where a length has no score."""
        values = self.seeds[seed].values
        return _mean([values.get((metric, length)) for length in lengths])

    def measured(self, metric: str, lengths: Sequence[int]) -> list[float]:
        """Return one value for each seed that has one, failed seeds left out."""
        counted = [seed for seed, one in self.seeds.items() if one.status != "failed"]
        values = (self.value(seed, metric, lengths) for seed in counted)
        return [value for value in values if value is not None]

    def tested(self, metric: str) -> tuple[int, ...]:
        """Return the lengths whose test sets were scored by a metric."""
        places = {place for one in self.seeds.values() for place in one.places}
        return tuple(sorted(at for split, what, at in places if (split, what) == ("test", metric)))

    def values(
        self, metric: str, length: int, split: str = "test", later: bool = False
    ) -> dict[int, float]:
        """Return the value of each seed that has one; `later`: as measured after the study."""
        place = split, metric, length
        found = {number: one.later if later else one.places for number, one in self.seeds.items()}
        return {number: values[place] for number, values in found.items() if place in values}

    def interval(
        self, metric: str, length: int, split: str = "test", later: bool = False
    ) -> Interval | None:
        """Return mean and 95 % t-interval over seeds; None where nothing was measured."""
        values = self.values(metric, length, split, later).values()
        return t_interval(values) if values else None

    def floor(self, metric: str, lengths: Sequence[int]) -> float | None:
        """Return the mean score, over lengths, of a model that learned nothing; None if unknown."""
        return _mean([metric_of(metric).floor_given(self.blind_guess(one)) for one in lengths])

    def blind_guess(self, length: int) -> float | None:
        """The accuracy of the best blind guess, as it is stored with the scores of a seed."""
        return _first(one.values.get((FLOOR, length)) for one in self.seeds.values())

    def fit(self, threshold: float) -> Fit:
        """Return the fit of the arm to what it was trained on."""
        values = [one.fit for one in self.seeds.values() if one.status != "failed"]
        known = [value for value in values if value is not None]
        mean = _mean(values) if values else None
        learned = mean is not None and mean >= threshold
        solved = sum(value >= threshold for value in known)
        failed = self.count("failed")
        open_ = [mean_of([*known, *[one] * failed]) for one in (0.0, 1.0)] if failed else []
        sure = len({one >= threshold for one in open_}) < 2
        return Fit(mean, solved, len(self.seeds), learned, sure)

    def reach(self, threshold: float) -> Reach:
        """Follow the tested lengths upwards from the longest trained one."""
        longest, trained = self.longest_trained, self.trained_skill
        if longest is None or trained is None:
            return Reach(None)
        if trained.mean < threshold:
            return Reach(False, skill=trained.mean)
        found = {one: self.interval("skill", one) for one in sorted(self.beyond)}
        means = {one: None if skill is None else skill.mean for one, skill in found.items()}
        far = held([(longest, trained.mean), *means.items()], threshold)
        below = far.first_length_below
        skill = None if below is None else means[below]
        return Reach(True, far.last_length_above, below, skill, far.unmeasured)

    @property
    def trained_skill(self) -> Interval | None:
        """The mean skill at the longest trained length: on its test set, or else on validation."""
        values = self._trained_skills.values()
        return t_interval(values) if values else None

    def learners(self, threshold: float) -> int:
        """Count the seeds that learned the trained lengths."""
        return sum(value >= threshold for value in self._trained_skills.values())

    @property
    def _trained_skills(self) -> dict[int, float]:
        longest = self.longest_trained
        if longest is None:
            return {}
        return self.values("skill", longest) or self.values("skill", longest, "validation")

    def solved(self, length: int, threshold: float) -> Interval | None:
        """Of the seeds that are over, the share whose skill reaches the threshold, by Wilson.

        A seed that failed is one that did not solve it.
        """
        over = sum(one.ended for one in self.seeds.values())
        reached = sum(value >= threshold for value in self.values("skill", length).values())
        return wilson(reached, over) if over else None

    @property
    def _known_times(self) -> list[Time]:
        found = (one.time for one in self.seeds.values() if one.status != "diverged")
        return [time for time in found if time is not None]

    def times(self, reached: bool = True) -> list[float]:
        """The times of the seeds that met the criterion of fit, or at which the others ended."""
        return sorted(float(one.steps) for one in self._known_times if one.reached == reached)

    def median_time(self) -> float | None:
        """The step by which half of the seeds met the criterion of fit; None if more never did.

        That of Kaplan and Meier: a seed that ended without counts as one that takes longer, one
        that diverged as one that never gets there; of one that failed nothing is known.
        """
        known = self._known_times
        if not known:
            return None
        end = max(time.steps for time in known)
        return kaplan_meier([*known, *[Time(end, reached=False)] * self.count("diverged")]).median


@dataclass(frozen=True)
class Task:
    """One task of a study with its settings, and all arms on it.

    Args:
        label: Under which its runs are stored.
        title: What heads it: the task with its options, after the label where it has one.
        task: The task with its options; "" where there is none.
        trained: The shortest and the longest trained length.
        steps: Of a training.
        lengths: The tested lengths.
        scored: Are its runs trained and scored?
        arms: Every arm on it.
        titles: The metrics that the study shows, with their titles, where it says so.
        fit: What was waited for in words, if training had a criterion of fit.
        threshold: The skill from which on an arm has learned.
    """

    label: str
    title: str
    task: str
    trained: tuple[int, int]
    steps: int
    lengths: list[int]
    scored: bool
    arms: list[Arm]
    titles: Mapping[str, str] = field(default_factory=dict[str, str])
    fit: str = ""
    threshold: float = 0.8

    @property
    def has_skill(self) -> bool:
        """Whether it is a task that is trained on and scored by skill."""
        return self.scored and not self.titles

    @property
    def seeds(self) -> list[Seed]:
        """The seeds of all arms."""
        return [seed for arm in self.arms for seed in arm.seeds.values()]

    def blind_guess(self, length: int) -> float | None:
        """The accuracy of the best blind guess, at which skill is 0."""
        return _first(arm.blind_guess(length) for arm in self.arms)

    def blind_guesses(self, metric: str) -> dict[int, float | None]:
        """The accuracy of the best blind guess at each length, where it is a metric's floor."""
        if metric_of(metric).floor_in is None:
            return {}
        found = {length: self.blind_guess(length) for length in self.lengths}
        return found if any(value is not None for value in found.values()) else {}

    def arm(self, name: str) -> Arm:
        """Return the arm of this name."""
        return next(arm for arm in self.arms if arm.name == name)

    @cached_property
    def later_lengths(self) -> list[int]:
        """The lengths at which skill was measured after the study."""
        keys = {key for seed in self.seeds for key in seed.later}
        return sorted(one for split, metric, one in keys if (split, metric) == ("test", "skill"))

    @cached_property
    def metrics(self) -> list[str]:
        """The shown metrics that were measured on the test sets."""
        places = (place for seed in self.seeds for place in seed.places)
        return self._shown(metric for split, metric, _ in places if split == "test")

    @cached_property
    def binned(self) -> list[str]:
        """The shown metrics that were measured there by bin."""
        return self._shown(metric for seed in self.seeds for metric, _ in seed.bins)

    def _shown(self, measured: Iterable[str]) -> list[str]:
        """In the order of the study, or else of measuring."""
        found = dict.fromkeys(measured)
        return [metric for metric in self.titles or found if metric in found]

    def title_of(self, metric: str) -> str:
        """Return the title of a metric in its tables."""
        return self.titles.get(metric, metric_of(metric).title)

    @cached_property
    def measured(self) -> list[tuple[str, int]]:
        """Split and length of what is drawn: validation at trained lengths, then the test sets."""
        places = [("test", length) for length in self.lengths]
        if self.has_skill:
            every = {place for seed in self.seeds for place in seed.places}
            own = {
                one for split, metric, one in every if (split, metric) == ("validation", "skill")
            }
            places += [("validation", length) for length in own - set(self.lengths)]
        return sorted(places, key=lambda place: place[1])


@dataclass(frozen=True)
class StudyResults:
    """The stored results of a plan: all its tasks, with all their arms and seeds.

    `changed` are the runs of each arm whose parts had another source than the plan has.
    """

    plan: "Plan"
    tasks: list[Task]
    changed: Mapping[str, list[int]] = field(default_factory=dict[str, list[int]])

    @property
    def arms(self) -> Iterator[tuple[Task, Arm]]:
        """Every arm with its task."""
        return ((task, arm) for task in self.tasks for arm in task.arms)

    @property
    def runs(self) -> list["Run"]:
        """The final runs of all arms."""
        return [run for _, arm in self.arms for run in arm.runs]

    def arm(self, task: str, name: str) -> Arm | None:
        """Return the arm of this name on the task of this label; None where there is none."""
        return next((arm for at, arm in self.arms if (at.label, arm.name) == (task, name)), None)


def _first(values: Iterable[float | None]) -> float | None:
    return next((value for value in values if value is not None), None)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean_of(known) if len(known) == len(values) else None
