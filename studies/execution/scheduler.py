"""Schedule a study: plan its runs, keep workers at them, see tuning through to confirming."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from store.records import FINISHED, PlannedRun
from studies.errors import WorkerError
from studies.execution.pool import WorkerPool
from studies.execution.progress import Progress, steps_left
from studies.execution.trials import Trials
from studies.execution.worker import Job, is_alive
from studies.experiment.plan import Cell, Plan
from studies.experiment.settings import Setting
from studies.experiment.tune import Tried, by_setting, choose, validation_nll

if TYPE_CHECKING:
    from store.ledger import Ledger


POLL_SECONDS = 0.25
RECOVER_SECONDS = 5.0


@dataclass(frozen=True)
class Origin:
    """The machine that plans runs, and the provenance noted with each."""

    environment_id: int | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Scheduler:
    """Sees a planned study through; calling it again does just what is missing.

    Args:
        plan: The study.
        ledger: Where the plan is kept and its runs are planned.
        trials: Optuna's mirror of its tuning runs.
        origin: What is noted with the runs that are planned now.
    """

    def __init__(
        self, plan: Plan, ledger: "Ledger", trials: Trials, origin: Origin | None = None
    ) -> None:
        self.plan, self.ledger, self.trials = plan, ledger, trials
        self.origin = origin or Origin()
        ledger.keep_plan(plan.study, plan.to_data())
        self.tuning = self.submit({cell: plan.tuning(cell) for cell in plan.cells()})
        self.confirming: dict[Cell, list[int]] = {}
        self.chosen: dict[Cell, Setting | None] = {}
        self.rerun: set[str] = set()
        self._superseded = False

    def submit(self, planned: Mapping[Cell, Iterable[PlannedRun]]) -> dict[Cell, list[int]]:
        """Plan what is not there yet; return the ids of all, by cell."""
        groups = {cell: [self._noted(run) for run in runs] for cell, runs in planned.items()}
        ids = iter(self.ledger.plan(run for runs in groups.values() for run in runs))
        return {cell: list(islice(ids, len(runs))) for cell, runs in groups.items()}

    def _noted(self, run: PlannedRun) -> PlannedRun:
        provenance = {**self.origin.provenance, **run.provenance}
        return replace(run, environment_id=self.origin.environment_id, provenance=provenance)

    def ids(self) -> list[int]:
        """The runs planned so far."""
        return [*_flat(self.tuning), *_flat(self.confirming)]

    def final_ids(self) -> list[int]:
        """The confirming runs planned so far."""
        return _flat(self.confirming)

    def recover(self, rerun: Iterable[str] = ()) -> None:
        """Take back what dead workers held, plan failed runs anew, bring Optuna in line.

        Args:
            rerun: Arms that are tuned and confirmed again, in place of their stored runs.
        """
        self.rerun = set(rerun)
        again = [cell for cell in self.tuning if cell.arm in self.rerun]
        if again:
            self.ledger.reset([one for cell in again for one in self.tuning[cell]], FINISHED)
        self.advance()
        self.ledger.recover(self.ids(), is_alive)
        self.ledger.reset(self.ids(), ("failed",))
        self.chosen = {cell: one for cell, one in self.chosen.items() if one is not None}
        # Once more, so that runs planned anew carry the source and the environment of now.
        self.submit({cell: self.plan.tuning(cell) for cell in self.plan.cells()})
        self.submit(self._confirming_of(self.chosen))
        self.reconcile()

    def _confirming_of(self, chosen: Mapping[Cell, Setting | None]) -> dict[Cell, list[PlannedRun]]:
        return {
            cell: list(self.plan.confirming(cell, setting))
            for cell, setting in chosen.items()
            if setting is not None
        }

    def reconcile(self) -> None:
        """Close the trials that no running run stands behind."""
        runs = self.ledger.runs(_flat(self.tuning))
        if runs:
            done = [run.id for run in runs if run.status == "done"]
            self.trials.reconcile(runs, self._nlls(done))

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
            fresh = {cell: self.choose(cell, tried[cell]) for cell in over}
            self.chosen |= fresh
            self._confirm(fresh)

    def _confirm(self, chosen: Mapping[Cell, Setting | None]) -> None:
        planned = self._confirming_of(chosen)
        self.confirming |= self.submit(planned)
        again = {cell: runs for cell, runs in planned.items() if cell.arm in self.rerun}
        if again:
            self.ledger.reset([one for cell in again for one in self.confirming[cell]], FINISHED)
            self.submit(again)

    def choose(self, cell: Cell, tried: Sequence[Tried]) -> Setting | None:
        """The setting that the confirming runs of a cell get; None if tuning ended without one."""
        protocol = self.plan.protocol
        if not tried:
            return self.plan[cell].tries[0].setting
        choice = choose(cell, tried, protocol.tie, protocol.ties)
        self.ledger.choose(choice)
        return choice.setting

    def tried(self, cells: Sequence[Cell]) -> dict[Cell, list[Tried]]:
        """The settings tried for each cell, in order; none where nothing is tuned."""
        numbers = [number for cell in cells for number in self.tuning[cell]]
        runs = {run.id: run for run in self.ledger.runs(numbers)}
        nlls = self._nlls([run.id for run in runs.values() if run.status == "done"])
        own = {cell: [runs[number] for number in self.tuning[cell]] for cell in cells}
        return {
            cell: by_setting(self.plan, cell, found, nlls) if found else []
            for cell, found in own.items()
        }

    def unfinished(self) -> bool:
        """Return whether runs of the plan remain to be done."""
        return any(status not in FINISHED for status in self.advance().values())

    def finished(self) -> int:
        """The number of runs that have ended."""
        return sum(one in FINISHED for one in self.ledger.statuses(self.ids()).values())

    def expected(self) -> int:
        """The number of runs of the plan, as far as it is known."""
        cells = len(self.tuning) - sum(setting is None for setting in self.chosen.values())
        return len(_flat(self.tuning)) + cells * self.plan.protocol.seeds

    def conduct(self, job: Job, workers: int, show: Callable[[Progress], None]) -> None:
        """Keep workers at the runs until all are finished.

        Workers that die are replaced; their runs are done again. Whatever ends this call, no
        worker is left behind, and what they were at is planned again.
        """
        self.trials.prepare()
        most = len(_flat(self.tuning)) + len(self.tuning) * self.plan.protocol.seeds
        pool = WorkerPool(job, workers, capacity=most)
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

    def _replace_dead(self, pool: WorkerPool) -> None:
        """Start workers in place of those that have died, whose runs are planned again.

        Raises:
            WorkerError: If one ended by an error of its own before it claimed a run.
        """
        dead = pool.dead()
        if not dead:
            return
        taken = self.ledger.recover(self.ids(), is_alive)
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
        for cell, numbers in self.tuning.items():
            planned = (*numbers, *self.confirming.get(cell, ()))
            waiting = 0 if cell in self.chosen else self.plan.protocol.seeds
            there = sum(statuses[one] not in FINISHED for one in planned)
            yield from [self.plan[cell].steps] * (there + waiting)


def _flat(groups: Mapping[Cell, Sequence[int]]) -> list[int]:
    return [number for numbers in groups.values() for number in numbers]


def job_for(
    url: str, plugins: Sequence[str], device: str, threads: int, save_models: bool = False
) -> Job:
    """The job of this process's workers."""
    return Job(url, tuple(plugins), device, threads, os.getpid(), save_models)
