"""Make the results of a study from its plan and the stored rows; nothing is planned or written."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING

from registry.config import hash_of
from store.metrics import metric_of
from studies.analysis.phrases import fit_title
from studies.analysis.results import (
    Alternative,
    Arm,
    Curve,
    Measure,
    Place,
    Seed,
    StudyResults,
    Task,
    Tried,
)
from studies.experiment.plan import Cell, Plan
from studies.experiment.tune import by_setting, in_words, undecided, validation_nll

if TYPE_CHECKING:
    from store.records import Choice, PlannedRun, Run, Score
    from store.results import Results

Key = tuple[str, str, str, int, str, str]

RESULTS = ("done", "diverged", "not_applicable")
"""The statuses of runs that need not be done again; one that failed is tried by the next call."""

NOT_OVER = "tuning is not over"
"""Why there is no setting so far."""

SPLITS = ("train", "validation", "test")
"""Where one length is measured in several of them, the later one decides."""

ORACLE = "best on the test lengths (an oracle, used for no verdict)"
NEAR = "fits as well"
CHOSEN = "chosen"
AS_GOOD = "as good, within the tolerance"


class StoredRuns:
    """The runs of a plan that a database holds, with what tuning chose.

    Args:
        plan: The study with its settings.
        results: The database.
    """

    def __init__(self, plan: Plan, results: "Results") -> None:
        self.plan, self.results = plan, results
        found = results.runs(study=plan.study, phase=None)
        self._known = {_key(run): run for run in found}
        self._choices = {
            (one.task, one.arm, one.search): one for one in results.choices(plan.study)
        }
        self._of_cell: dict[Cell, Choice | None] = {}

    def _found(self, planned: Iterable["PlannedRun"]) -> list["Run"]:
        return [self._known[key] for key in map(_key, planned) if key in self._known]

    def tuning(self, cell: Cell) -> list["Run"]:
        """Return the stored tuning runs of a cell."""
        return self._found(self.plan.tuning(cell))

    def choice(self, cell: Cell) -> "Choice | None":
        """Return the choice of tuning; None where nothing is tuned, or not all of it is planned.

        As long as tuning is not over there is no setting in it, but what was tried so far.
        """
        if cell not in self._of_cell:
            self._of_cell[cell] = self._choice(cell)
        return self._of_cell[cell]

    def _choice(self, cell: Cell) -> "Choice | None":
        protocol, runs = self.plan.protocol, self.tuning(cell)
        if not runs or len(runs) < len(self.plan[cell].tries) * len(protocol.tuning_seeds):
            return None
        nlls = {one.id: validation_nll(self.scores[one.id]) for one in runs if one.status == "done"}
        tried = by_setting(self.plan, cell, runs, nlls)
        so_far = undecided(cell, tried, protocol.tie, protocol.ties, NOT_OVER)
        return self._choices.get((cell.task, cell.arm, so_far.search), so_far)

    def final(self, cell: Cell) -> list["Run"]:
        """Return the stored final runs of a cell; none where it has no setting so far."""
        planned = self.plan[cell]
        if not planned.tuned:
            return self._found(self.plan.confirming(cell, planned.tries[0].setting))
        choice = self.choice(cell)
        if choice is None or choice.setting is None:
            return []
        return self._found(self.plan.confirming(cell, choice.setting))

    def is_lost(self, cell: Cell) -> bool:
        """Return whether tuning ended without a setting, so that nothing is confirmed."""
        choice = self.choice(cell)
        return choice is not None and choice.setting is None and choice.reason != NOT_OVER

    def expected(self, cell: Cell) -> int:
        """The number of final runs that a cell has in the end."""
        return 0 if self.is_lost(cell) else self.plan.protocol.seeds

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be done, and nothing worth trying again."""
        for cell in self.plan.cells():
            final = self.final(cell)
            if any(run.status not in RESULTS for run in (*self.tuning(cell), *final)):
                return False
            if len(final) < self.expected(cell):
                return False
        return True

    def changed(self) -> dict[str, list[int]]:
        """The runs of each arm whose parts had another source than the plan has.

        Runs of an older version note fewer parts; what they do not note is not compared.
        """
        found: dict[str, list[int]] = {}
        of_cell = {cell: [*self.tuning(cell), *self.final(cell)] for cell in self.plan.cells()}
        codes = {run.code_hash or "" for runs in of_cell.values() for run in runs}
        noted = {code: self.results.components(code) for code in codes}
        for cell, runs in of_cell.items():
            parts = self.plan.code[self.plan[cell].tries[0].code_hash]
            now = {(part.kind, part.name): part.source_hash for part in parts}
            for run in runs:
                before = noted[run.code_hash or ""]
                if any(now.get((one.kind, one.name)) != one.source_hash for one in before):
                    found.setdefault(cell.arm, []).append(run.id)
        return found

    @cached_property
    def scores(self) -> Mapping[int, list["Score"]]:
        """The scores of every run of the study, by run."""
        found: dict[int, list[Score]] = defaultdict(list)
        for score in self.results.scores(study=self.plan.study, phase=None):
            found[score.run_id].append(score)
        return found

    @cached_property
    def curves(self) -> Mapping[int, Mapping[str, Curve]]:
        """The training curves of every final run of the study, by run and metric."""
        found: dict[int, dict[str, Curve]] = defaultdict(lambda: defaultdict(list))
        for point in self.results.curves(study=self.plan.study):
            if point.value is not None:
                found[point.run_id][point.metric].append((point.step, point.value))
        return found


def results_of(plan: Plan, storage: str) -> StudyResults:
    """Read what the database at an address holds of a plan."""
    from store.results import Results  # which loads SQLAlchemy

    with closing(Results(storage)) as results:
        return gather(StoredRuns(plan, results))


def gather(stored: StoredRuns) -> StudyResults:
    """Make results of what is stored of a plan."""
    plan = stored.plan
    tasks = dict.fromkeys(cell.task for cell in plan.cells())
    found = [_task(stored, plan.cells(task)) for task in tasks]
    return StudyResults(plan, found, stored.changed())


def _task(stored: StoredRuns, cells: Sequence[Cell]) -> Task:
    plan, first = stored.plan, stored.plan[cells[0]]
    task = plan.tasks[first.cell.task]
    until = first.until if first.scored else None
    return Task(
        label=task.label,
        title=task.title or task.label,
        task=task.name,
        trained=first.trained,
        steps=first.steps,
        lengths=sorted({one for cell in cells for one in plan[cell].tested}),
        scored=first.scored,
        arms=[_arm(stored, cell) for cell in cells],
        titles=plan.titles,
        fit="" if until is None else fit_title(until.metric, until.value),
        threshold=plan.protocol.threshold,
    )


def _arm(stored: StoredRuns, cell: Cell) -> Arm:
    planned, choice = stored.plan[cell], stored.choice(cell)
    longest = planned.longest if planned.scored else None
    reason = ""
    if planned.tuned:
        reason = NOT_OVER if choice is None else choice.reason or ""
    return Arm(
        seeds={
            run.seed: seed_of(run, stored.scores[run.id], stored.curves.get(run.id, {}), longest)
            for run in stored.final(cell)
        },
        longest_trained=longest,
        reason=reason,
        name=cell.arm,
        lengths=planned.tested,
        choice=choice,
        tuning=[] if choice is None else tried_settings(choice, stored.tuning(cell)),
        alternatives=[] if choice is None else alternatives(choice, planned.beyond, stored.scores),
        remark=stored.plan.arms[cell.arm].remark,
    )


def seed_of(
    run: "Run", scores: Iterable["Score"], curves: Mapping[str, Curve], longest: int | None
) -> Seed:
    """Return a run with its scores; `longest` is the longest trained length, if there is one.

    What was measured in one of several bins is a metric of its own, `metric[bin]`.
    """
    every = list(scores)
    own = [one for one in every if not one.later]
    values: dict[Measure, float | None] = {
        (one.metric if one.bin is None else f"{one.metric}[{one.bin}]", one.length): one.value
        for split in SPLITS
        for one in own
        if one.split == split
    }
    timed = (one for one in own if metric_of(one.metric).kind == "time")
    bins: dict[Measure, Curve] = defaultdict(list)
    for one in own:
        if one.split == "test" and one.bin is not None and one.value is not None:
            bins[one.metric, one.length].append((one.bin, one.value))
    return Seed(
        status=run.status,
        values=values,
        fit=None if longest is None else values.get(("skill", longest)),
        censored=frozenset((one.metric, one.length) for one in timed if one.correct == 0),
        run=run,
        places=_places(own),
        bins={measure: sorted(points) for measure, points in bins.items()},
        curves=curves,
        later=_places(one for one in every if one.later),
    )


def _places(scores: Iterable["Score"]) -> dict[Place, float]:
    return {
        (one.split, one.metric, one.length): one.value
        for one in scores
        if one.value is not None and one.bin is None
    }


def _key(run: "Run | PlannedRun") -> Key:
    foreign = hash_of(run.provenance.get("plugin_parts") or {})
    return run.task, run.arm, run.phase, run.seed, run.config_hash, foreign


# What tuning tried and chose, and what other settings would have shown; no verdict uses these.
# Settings that fit as well may extrapolate differently, and published tables often choose on the
# test lengths themselves. Both are shown beside the answer, from the tuning runs alone.


def tried_settings(choice: "Choice", runs: Sequence["Run"]) -> list[Tried]:
    """Return the settings that were tried, in their order; `runs` are those of tuning."""
    known = {run.id: run for run in runs}
    shown: list[Tried] = []
    for one in choice.tried:
        chosen, near = one["setting"] == choice.setting, one["setting"] in choice.near
        ended = sorted({known[run].reason or known[run].status for run in one["runs"]})
        note = "; ".join(ended) if one["nll"] is None else AS_GOOD * near
        at_edge = chosen and bool(choice.edges)
        shown.append(Tried(in_words(one["setting"]), one["nll"], chosen, at_edge, note))
    return shown


def alternatives(
    choice: "Choice", beyond: Sequence[int], scores: Mapping[int, Sequence["Score"]]
) -> list[Alternative]:
    """The chosen setting, those that fit as well, and the one that is best on the test lengths.

    Empty where there is nothing beside the chosen one, or nothing beyond the trained lengths.

    Args:
        choice: What tuning chose.
        beyond: The tested lengths beyond the trained ones.
        scores: Of the tuning runs, by run.
    """
    found = {
        number: skills
        for number, one in enumerate(choice.tried)
        if (skills := _skills(one["runs"], beyond, scores)) and len(skills) == len(beyond)
    }
    if not found or choice.setting is None:
        return []
    chosen = next(n for n, one in enumerate(choice.tried) if one["setting"] == choice.setting)
    # Of settings that tie, the chosen one is no worse than the best.
    best = max(found, key=lambda number: (sum(found[number].values()), number == chosen))
    shown: list[Alternative] = []
    for number, skills in found.items():
        setting = choice.tried[number]["setting"]
        roles = [CHOSEN] if setting == choice.setting else []
        roles += [NEAR] if setting in choice.near else []
        roles += [ORACLE] if number == best else []
        if roles:
            shown.append(Alternative(setting, tuple(roles), skills))
    return shown if len(shown) > 1 else []


def _skills(
    runs: Sequence[int], lengths: Sequence[int], scores: Mapping[int, Sequence["Score"]]
) -> dict[int, float]:
    """The mean over the tuning seeds at each length that was measured."""
    skills: dict[int, list[float]] = {length: [] for length in lengths}
    for run in runs:
        for (split, metric, length), value in _places(
            one for one in scores.get(run, ()) if not one.later
        ).items():
            if (split, metric) == ("test", "skill") and length in skills:
                skills[length].append(value)
    return {length: sum(values) / len(values) for length, values in skills.items() if values}
