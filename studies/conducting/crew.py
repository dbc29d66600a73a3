"""The worker processes of one call: hired, replaced when they die, dismissed at the end."""

import multiprocessing
import time
from typing import TYPE_CHECKING, Any

from studies.conducting.worker import Board, Job, is_alive, work
from studies.errors import WorkerError

if TYPE_CHECKING:
    from studies.conducting.conduct import Conductor

JOIN_SECONDS = 20.0


class Crew:
    """The worker processes of one call."""

    def __init__(self, conductor: "Conductor", job: Job, workers: int) -> None:
        self.conductor, self.job = conductor, job
        self.context: Any = multiprocessing.get_context("spawn")
        # Room for the confirming runs of every cell, whatever tuning finds.
        settings = conductor.plan.settings.study
        capacity = len(conductor.tuning) * (
            settings.seeds + len(settings.settings()) * settings.tuning_seeds
        )
        self.board = Board.new(self.context, capacity, workers)
        self.posted: set[int] = set()
        self.processes: list[Any] = [None] * workers

    def start(self) -> None:
        """Show what is planned, and hire everybody."""
        self.post()
        for slot in range(len(self.processes)):
            self.hire(slot)

    def hire(self, slot: int) -> None:
        """Start a worker in this place."""
        self.board.at_hand[slot] = 0
        process = self.context.Process(target=work, args=(self.job, self.board, slot), daemon=True)
        process.start()
        self.processes[slot] = process

    def steps(self) -> tuple[list[int], list[int]]:
        """Training steps that each worker has done so far, and those of the run that it is at."""
        return self.board.steps[:], self.board.at_hand[:]

    def post(self) -> None:
        """Show the workers what is planned."""
        fresh = [number for number in self.conductor.ids() if number not in self.posted]
        self.board.post(fresh)
        self.posted.update(fresh)

    def replace_dead(self) -> None:
        """Hire for those that have died, whose runs are planned again.

        Raises:
            WorkerError: If one ended by an error of its own before it claimed a run.
        """
        dead = [slot for slot, process in enumerate(self.processes) if not process.is_alive()]
        if not dead:
            return
        taken = self.conductor.ledger.recover(self.conductor.ids(), is_alive)
        self.conductor.reconcile()
        for slot in dead:
            code = self.processes[slot].exitcode
            if not taken and code not in (0, None) and code > 0:
                raise WorkerError(f"a worker ended with exit code {code} before it claimed a run")
            self.hire(slot)

    def dismiss(self) -> None:
        """End all workers: those at work hand their runs back."""
        self.board.closed.value = 1
        there = [process for process in self.processes if process is not None]
        for process in there:
            process.terminate()
        deadline = time.monotonic() + JOIN_SECONDS
        for process in there:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        self.conductor.ledger.recover(self.conductor.ids(), is_alive)
        self.conductor.reconcile()
