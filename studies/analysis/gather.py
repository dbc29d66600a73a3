"""Make the results of a study from its plan and the stored rows; nothing is planned or written."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING

from store.metrics import metric_of
from studies.analysis.choice import alternatives, tried_settings
from studies.analysis.phrases import fit_title
from studies.analysis.results import Arm, Curve, Measure, Place, Seed, StudyResults, Task
from studies.experiment.plan import Cell, Plan
from studies.experiment.tune import Chosen, by_setting, choice_of, validation_nll
from studies.training.settings import task_of

if TYPE_CHECKING:
    from store.records import Choice, PlannedRun, Run, Score
    from store.results import Results

Key = tuple[str, str, str, int, str]

NOT_OVER = "tuning is not over"
"""Why there is no setting so far."""

SPLITS = ("train", "validation", "test")
"""Where one length is measured in several of them, the later one decides."""


class StoredRuns:
    """The runs of a plan that a database holds, with what tuning chose.

    Args:
        plan: The study with its settings.
        results: The database.
    """

    def __init__(self, plan: Plan, results: "Results") -> None:
        self.plan, self.results = plan, results
        found = results.runs(study=plan.study.name, phase=None)
        # Of runs with one config, such as those of a plug-in's older source, the newest counts.
        self._known = {_key(run): run for run in found}
        self._choices = {
            (one.task, one.arm, one.search): one for one in results.choices(plan.study.name)
        }

    def _found(self, planned: Iterable["PlannedRun"]) -> list["Run"]:
        return [self._known[key] for key in map(_key, planned) if key in self._known]

    def tuning(self, cell: Cell) -> list["Run"]:
        """The tuning runs of a cell that are there."""
        return self._found(self.plan.tuning(cell))

    def choice(self, cell: Cell) -> "Choice | None":
        """What tuning chose for a cell; None where nothing is tuned, or not all of it is planned.

        As long as tuning is not over there is no setting in it, but what was tried so far.
        """
        study, runs = self.plan.settings.study, self.tuning(cell)
        if not runs or len(runs) < len(study.settings()) * study.tuning_seeds:
            return None
        nlls = {one.id: validation_nll(self.scores[one.id]) for one in runs if one.status == "done"}
        tried = by_setting(study.settings(), runs, study.tuning_seeds, nlls)
        so_far = choice_of(cell, tried, Chosen(None, NOT_OVER), study.tie, study.ties)
        return self._choices.get((cell.task, cell.arm, so_far.search), so_far)

    def final(self, cell: Cell) -> list["Run"]:
        """The final runs of a cell that are there; none where it has no setting so far."""
        if not self.plan.is_tuned(cell):
            return self._found(self.plan.confirming(cell, self.plan.settings.study.settings()[0]))
        choice = self.choice(cell)
        if choice is None or choice.setting is None:
            return []
        return self._found(self.plan.confirming(cell, choice.setting))

    @cached_property
    def scores(self) -> Mapping[int, list["Score"]]:
        """The scores of every run of the study, by run."""
        found: dict[int, list[Score]] = defaultdict(list)
        for score in self.results.scores(study=self.plan.study.name, phase=None):
            found[score.run_id].append(score)
        return found

    @cached_property
    def curves(self) -> Mapping[int, Mapping[str, Curve]]:
        """The training curves of every final run of the study, by run and metric."""
        found: dict[int, dict[str, Curve]] = defaultdict(lambda: defaultdict(list))
        for point in self.results.curves(study=self.plan.study.name):
            if point.value is not None:
                found[point.run_id][point.metric].append((point.step, point.value))
        return found


def results_of(plan: Plan, storage: str) -> StudyResults:
    """What the database at an address holds of a plan."""
    from store.results import Results  # which loads SQLAlchemy

    with closing(Results(storage)) as results:
        return gather(plan, results)


def gather(plan: Plan, results: "Results") -> StudyResults:
    """What is stored of a plan."""
    stored = StoredRuns(plan, results)
    cells: dict[str, list[Cell]] = defaultdict(list)
    for cell in plan.cells():
        cells[cell.task].append(cell)
    return StudyResults(plan, [_task(stored, of_task) for of_task in cells.values()])


def _task(stored: StoredRuns, cells: Sequence[Cell]) -> Task:
    plan, first = stored.plan, cells[0]
    config = plan.config(first)
    shortest, longest = config.training.train_lengths
    if config.scored:
        shortest = max(shortest, task_of(config.task).min_length)
    until = config.training.until if config.scored else None
    tasks, label = tasks_of(plan, first.panel), plan.panel(first).label
    return Task(
        label=first.task,
        title=": ".join(text for text in (label, tasks) if text) or first.task,
        task=tasks,
        trained=(shortest, longest),
        steps=config.training.steps,
        lengths=sorted({one for cell in cells for one in _lengths(plan, cell)}),
        scored=config.scored,
        arms=[_arm(stored, cell) for cell in cells],
        titles=plan.study.metrics,
        fit="" if until is None else fit_title(until.metric, until.value),
        threshold=plan.settings.study.threshold,
    )


def tasks_of(plan: Plan, panel: int) -> str:
    """The task of a panel; several, where its arms differ in that."""
    tasks = [plan.config(cell).task for cell in plan.cells() if cell.panel == panel]
    return " or ".join(dict.fromkeys(str(task) for task in tasks if task is not None))


def _lengths(plan: Plan, cell: Cell) -> tuple[int, ...]:
    return tuple(plan.config(cell).evaluation.test_lengths)


def _arm(stored: StoredRuns, cell: Cell) -> Arm:
    plan, config = stored.plan, stored.plan.config(cell)
    longest = config.training.train_lengths[1] if config.scored else None
    lengths, choice = _lengths(plan, cell), stored.choice(cell)
    reason = ""
    if plan.is_tuned(cell):
        reason = NOT_OVER if choice is None else choice.reason or ""
    longer = [one for one in lengths if one > config.training.train_lengths[1]]
    return Arm(
        seeds={
            run.seed: seed_of(run, stored.scores[run.id], stored.curves.get(run.id, {}), longest)
            for run in stored.final(cell)
        },
        longest_trained=longest,
        reason=reason,
        name=cell.arm,
        lengths=lengths,
        choice=choice,
        tuning=[] if choice is None else tried_settings(choice, stored.tuning(cell)),
        alternatives=[] if choice is None else alternatives(choice, longer, stored.scores),
        remark=plan.study.remark(plan.arms[cell.arm], plan.settings),
    )


def seed_of(
    run: "Run", scores: Iterable["Score"], curves: Mapping[str, Curve], longest: int | None
) -> Seed:
    """A run with what it measured; `longest` is the longest trained length, if there is one."""
    every = list(scores)
    own = [one for one in every if not one.later]
    values: dict[Measure, float | None] = {
        (measure_name(one), one.length): one.value
        for split in SPLITS
        for one in own
        if one.split == split
    }
    timed = (one for one in own if metric_of(one.metric).kind == "time")
    return Seed(
        status=run.status,
        values=values,
        fit=None if longest is None else values.get(("skill", longest)),
        censored=frozenset((one.metric, one.length) for one in timed if one.correct == 0),
        run=run,
        places=_places(own),
        bins=_bins(own),
        curves=curves,
        later=_places(one for one in every if one.later),
    )


def measure_name(score: "Score") -> str:
    """The name of what was measured; one of several bins is `metric[bin]`."""
    return score.metric if score.bin is None else f"{score.metric}[{score.bin}]"


def _places(scores: Iterable["Score"]) -> dict[Place, float]:
    return {
        (one.split, one.metric, one.length): one.value
        for one in scores
        if one.value is not None and one.bin is None
    }


def _bins(scores: Iterable["Score"]) -> dict[Measure, Curve]:
    found: dict[Measure, Curve] = defaultdict(list)
    for one in scores:
        if one.split == "test" and one.bin is not None and one.value is not None:
            found[one.metric, one.length].append((one.bin, one.value))
    return {measure: sorted(points) for measure, points in found.items()}


def _key(run: "Run | PlannedRun") -> Key:
    return run.task, run.arm, run.phase, run.seed, run.config_hash
