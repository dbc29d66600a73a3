"""Conduct a study: plan its runs, keep workers at them, see tuning through to confirming."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from store.records import FINISHED
from studies.errors import WorkerError
from studies.execution.pool import WorkerPool
from studies.execution.progress import Progress, steps_left
from studies.execution.trials import Trials
from studies.execution.worker import Job, is_alive
from studies.experiment.plan import Cell, Plan
from studies.experiment.settings import Setting
from studies.experiment.tune import Chosen, Tried, by_setting, choice_of, choose, validation_nll

if TYPE_CHECKING:
    from store.ledger import Ledger
    from store.records import PlannedRun, Run


POLL_SECONDS = 0.25
RECOVER_SECONDS = 5.0


class Scheduler:
    """Sees a planned study through; calling it again does just what is missing."""

    def __init__(self, plan: Plan, ledger: "Ledger", trials: Trials) -> None:
        self.plan, self.ledger, self.trials = plan, ledger, trials
        self.tuning = self.submit({cell: list(plan.tuning(cell)) for cell in plan.cells()})
        self.confirming: dict[Cell, list[int]] = {}
        self.chosen: dict[Cell, Chosen] = {}
        self.rerun: set[str] = set()
        self._superseded = False

    def submit(self, planned: Mapping[Cell, Sequence["PlannedRun"]]) -> dict[Cell, list[int]]:
        """Plan what is not there yet; return the ids of all, by cell."""
        ids = iter(self.ledger.plan(run for runs in planned.values() for run in runs))
        return {cell: list(islice(ids, len(runs))) for cell, runs in planned.items()}

    def ids(self) -> list[int]:
        """The runs planned so far."""
        groups = [*self.tuning.values(), *self.confirming.values()]
        return [number for group in groups for number in group]

    def recover(self, rerun: Iterable[str] = ()) -> None:
        """Take back what dead workers held, plan failed runs anew, bring Optuna in line.

        Args:
            rerun: Arms that are tuned and confirmed again, in place of their stored runs.
        """
        self.rerun = set(rerun)
        for cell, numbers in self.tuning.items():
            if cell.arm in self.rerun:
                self.ledger.reset(numbers, FINISHED)
        self.advance()
        self.ledger.recover(self.ids(), is_alive)
        self.ledger.reset(self.ids(), ("failed",))
        self.chosen = {cell: one for cell, one in self.chosen.items() if one.setting is not None}
        # Once more, so that runs planned anew carry the source and the environment of now.
        self.ledger.plan(self.plan.known({cell: one.setting for cell, one in self.chosen.items()}))
        self.reconcile()

    def reconcile(self) -> None:
        """Close the trials that no running run stands behind."""
        tuning = [number for numbers in self.tuning.values() for number in numbers]
        runs = self.ledger.runs(tuning)
        self.trials.reconcile(runs, self._nlls([run.id for run in runs if run.status == "done"]))

    def _nlls(self, run_ids: Sequence[int]) -> dict[int, float | None]:
        scores: dict[int, list[Any]] = defaultdict(list)
        for score in self.ledger.scores(run_ids):
            if not score.later:
                scores[score.run_id].append(score)
        return {number: validation_nll(scores[number]) for number in run_ids}

    def advance(self) -> dict[int, str]:
        """Choose where tuning is over and plan what follows; return the status of every run.

        Where all are finished, nothing follows any more: what is returned is what was judged by,
        since runs finish between one look and the next.
        """
        while True:
            statuses = self.ledger.statuses(self.ids())
            over = [
                cell
                for cell, numbers in self.tuning.items()
                if cell not in self.chosen and all(statuses[one] in FINISHED for one in numbers)
            ]
            if not over:
                if not self._superseded:
                    self.ledger.supersede(self.ids())
                    self._superseded = True
                return statuses
            tried = self.tried(over)
            self.chosen |= {cell: self.choose(cell, tried[cell]) for cell in over}
            settings = {cell: self.chosen[cell].setting for cell in over}
            self._confirm({cell: one for cell, one in settings.items() if one is not None})

    def _confirm(self, settings: Mapping[Cell, Setting]) -> None:
        planned = {cell: list(self.plan.confirming(cell, one)) for cell, one in settings.items()}
        self.confirming |= self.submit(planned)
        again = [cell for cell in planned if cell.arm in self.rerun]
        if again:
            self.ledger.reset([one for cell in again for one in self.confirming[cell]], FINISHED)
            self.submit({cell: planned[cell] for cell in again})

    def choose(self, cell: Cell, tried: Sequence[Tried]) -> Chosen:
        """The setting that the confirming runs of a cell get; the only one where there is one."""
        study = self.plan.settings.study
        if not tried:
            return Chosen(study.settings()[0])
        chosen = choose(tried, study.tie, study.ties)
        self.ledger.choose(choice_of(cell, tried, chosen, study.tie, study.ties))
        return chosen

    def tried(self, cells: Sequence[Cell]) -> dict[Cell, list[Tried]]:
        """What tuning tried for each cell, setting by setting; nothing where nothing is tuned."""
        study = self.plan.settings.study
        numbers = [number for cell in cells for number in self.tuning[cell]]
        runs = {run.id: run for run in self.ledger.runs(numbers)}
        nlls = self._nlls([run.id for run in runs.values() if run.status == "done"])
        ordered = {cell: [runs[one] for one in self.tuning[cell]] for cell in cells}
        return {
            cell: by_setting(study.settings(), own, study.tuning_seeds, nlls) if own else []
            for cell, own in ordered.items()
        }

    def unfinished(self) -> bool:
        """Is anything of the plan still to be done?"""
        return any(status not in FINISHED for status in self.advance().values())

    def changed(self) -> dict[str, list[int]]:
        """The runs of each arm that were done with another source of what they note.

        Runs of an older version note less; what they do not note is not compared.
        """
        found: dict[str, list[int]] = {}
        of_cell = self.runs()
        codes = {run.code_hash for runs in of_cell.values() for run in runs} - {None}
        noted = self.ledger.components(sorted(map(str, codes)))
        for cell, runs in of_cell.items():
            now = {(part.kind, part.name): part.source_hash for part in self.plan.parts(cell)}
            for run in runs:
                parts = noted.get(run.code_hash or "", ())
                if any(now.get((one.kind, one.name)) != one.source_hash for one in parts):
                    found.setdefault(cell.arm, []).append(run.id)
        return found

    def runs(self) -> dict[Cell, list["Run"]]:
        """All runs by cell, tuning before confirming."""
        found = {run.id: run for run in self.ledger.runs(self.ids())}
        return {
            cell: [found[one] for one in (*numbers, *self.confirming.get(cell, ()))]
            for cell, numbers in self.tuning.items()
        }

    def expected(self) -> int:
        """How many runs the plan has in all, as far as it is known."""
        lost = [cell for cell, chosen in self.chosen.items() if chosen.setting is None]
        cells = len(self.tuning) - len(lost)
        return sum(map(len, self.tuning.values())) + cells * self.plan.settings.study.seeds

    def conduct(self, job: Job, workers: int, show: Callable[[Progress], None]) -> None:
        """Keep workers at the runs until all are finished.

        Workers that die are replaced; their runs are done again. Whatever ends this call, no
        worker is left behind, and what they were at is planned again.
        """
        self.trials.prepare()
        pool = WorkerPool(job, workers, self._capacity())
        started = recovered = time.monotonic()
        try:
            pool.publish(self.ids())
            pool.start()
            while True:
                statuses = self.advance()
                pool.publish(self.ids())
                show(self._progress(statuses, pool, time.monotonic() - started))
                if all(status in FINISHED for status in statuses.values()):
                    return
                self._replace_dead(pool)
                if time.monotonic() - recovered > RECOVER_SECONDS:
                    recovered = time.monotonic()
                    self.ledger.recover(self.ids(), is_alive)
                time.sleep(POLL_SECONDS)
        finally:
            pool.stop()
            self.ledger.recover(self.ids(), is_alive)
            self.reconcile()

    def _capacity(self) -> int:
        """How many runs there can be, whatever tuning finds."""
        study = self.plan.settings.study
        return len(self.tuning) * (study.seeds + len(study.settings()) * study.tuning_seeds)

    def _replace_dead(self, pool: WorkerPool) -> None:
        """Start workers in place of those that have died, whose runs are planned again.

        Raises:
            WorkerError: If one ended by an error of its own before it claimed a run.
        """
        dead = pool.dead()
        if not dead:
            return
        taken = self.ledger.recover(self.ids(), is_alive)
        self.reconcile()
        for code in dead.values():
            if not taken and code is not None and code > 0:
                raise WorkerError(f"a worker ended with exit code {code} before it claimed a run")
        pool.restart(dead)

    def _progress(self, statuses: dict[int, str], pool: WorkerPool, seconds: float) -> Progress:
        tuning, confirming = (
            {cell: [statuses[one] for one in numbers] for cell, numbers in group.items()}
            for group in (self.tuning, self.confirming)
        )
        steps, at_hand = pool.steps()
        left = steps_left(self.unfinished_steps(statuses), at_hand)
        return Progress(tuning, confirming, self.expected(), sum(steps), seconds, left)

    def unfinished_steps(self, statuses: dict[int, str]) -> Iterator[int]:
        """The steps of every run that is not finished, those that tuning still holds up too."""
        seeds = self.plan.settings.study.seeds
        for cell, numbers in self.tuning.items():
            config, confirming = self.plan.config(cell), self.confirming.get(cell)
            chosen = self.chosen.get(cell)
            lost = chosen is not None and chosen.setting is None
            waiting = 0 if confirming is not None or lost else seeds
            there = sum(statuses[one] not in FINISHED for one in (*numbers, *(confirming or ())))
            yield from [0 if config.task is None else config.training.steps] * (there + waiting)


def job_for(
    url: str, plugins: Sequence[str], device: str, threads: int, save_models: bool = False
) -> Job:
    """The job of this process's workers."""
    return Job(url, tuple(plugins), device, threads, os.getpid(), save_models)
