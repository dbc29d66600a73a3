"""What is stored of a plan: its runs, what tuning tried and chose; read only."""

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from store.records import FINISHED
from studies.execution.worker import validation_nll
from studies.experiment.plan import Cell, Plan
from studies.experiment.tune import Chosen, Tried, by_setting, choose

if TYPE_CHECKING:
    from store.records import PlannedRun, Run, Score
    from store.results import Results

Key = tuple[str, str, str, int, str]


class Stored:
    """A plan and those of its runs that a database holds; nothing is planned or written.

    `scores` are what the runs measured, `later` what was added to them.

    Args:
        plan: The study with its settings.
        results: The database.
    """

    def __init__(self, plan: Plan, results: "Results") -> None:
        self.plan, self.results = plan, results
        found = results.runs(study=plan.study.name, phase=None)
        # Of runs with one config, such as those of a plug-in's older source, the newest counts.
        self._known = {_key(run): run for run in found}
        self.scores: dict[int, list[Score]] = defaultdict(list)
        self.later: dict[int, list[Score]] = defaultdict(list)
        for score in results.scores(study=plan.study.name, phase=None):
            if score.imputed:  # what a diverged seed counts as is added further on
                continue
            (self.later if score.later else self.scores)[score.run_id].append(score)
        self.chosen: dict[Cell, Chosen] = {}
        self.confirming: dict[Cell, list[Run]] = {}
        for cell in plan.cells():
            self.chosen[cell] = chosen = self._choose(cell)
            if chosen.setting is not None:
                self.confirming[cell] = self._found(plan.confirming(cell, chosen.setting))

    def _found(self, planned: Iterable["PlannedRun"]) -> list["Run"]:
        return [self._known[key] for key in map(_key, planned) if key in self._known]

    def tuning(self, cell: Cell) -> list["Run"]:
        """The tuning runs of a cell that are there."""
        return self._found(self.plan.tuning(cell))

    def tried(self, cell: Cell) -> list[Tried]:
        """What tuning tried for a cell, setting by setting; nothing where nothing was tuned."""
        study, runs = self.plan.settings.study, self.tuning(cell)
        if len(runs) < len(study.settings()) * study.tuning_seeds:
            return []
        nlls = {run.id: validation_nll(self.scores[run.id]) for run in runs if run.status == "done"}
        return by_setting(study.settings(), runs, study.tuning_seeds, nlls)

    def _choose(self, cell: Cell) -> Chosen:
        study = self.plan.settings.study
        if not self.plan.is_tuned(cell):
            return Chosen(study.settings()[0])
        tried = self.tried(cell)
        if not tried or any(run.status not in FINISHED for one in tried for run in one.runs):
            return Chosen(None, "tuning is not over")
        return choose(tried, study.tie, study.ties)


def _key(run: "Run | PlannedRun") -> Key:
    return run.task, run.arm, run.phase, run.seed, run.config_hash
