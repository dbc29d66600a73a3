"""The worker processes of one call: started, replaced when they die, stopped at the end."""

import multiprocessing
import time
from collections.abc import Iterable
from typing import Any

from studies.execution.worker import Job, SharedProgress, work

JOIN_SECONDS = 20.0


class WorkerPool:
    """The worker processes of one call, which knows their runs by their ids alone.

    `capacity` is the largest number of runs that may be published in all.
    """

    def __init__(self, job: Job, workers: int, capacity: int) -> None:
        self.job = job
        self._context: Any = multiprocessing.get_context("spawn")
        self._shared = SharedProgress.new(self._context, capacity, workers)
        self._published: set[int] = set()
        self._processes: list[Any] = [None] * workers

    def start(self) -> None:
        """Start every worker."""
        for slot in range(len(self._processes)):
            self._start(slot)

    def _start(self, slot: int) -> None:
        self._shared.at_hand[slot] = 0
        process = self._context.Process(
            target=work, args=(self.job, self._shared, slot), daemon=True
        )
        process.start()
        self._processes[slot] = process

    def publish(self, run_ids: Iterable[int]) -> None:
        """Show these runs to the workers, besides those shown before."""
        fresh = [number for number in run_ids if number not in self._published]
        self._shared.publish(fresh)
        self._published.update(fresh)

    def steps(self) -> tuple[list[int], list[int]]:
        """Training steps that each worker has done so far, and those of the run that it is at."""
        return self._shared.steps[:], self._shared.at_hand[:]

    def dead(self) -> dict[int, int | None]:
        """The exit codes of the workers that have ended, by their place."""
        return {
            slot: process.exitcode
            for slot, process in enumerate(self._processes)
            if not process.is_alive()
        }

    def restart(self, slots: Iterable[int]) -> None:
        """Start new workers in these places."""
        for slot in slots:
            self._start(slot)

    def stop(self) -> None:
        """End all workers: those at work hand their runs back."""
        self._shared.closed.value = 1
        started = [process for process in self._processes if process is not None]
        for process in started:
            process.terminate()
        deadline = time.monotonic() + JOIN_SECONDS
        for process in started:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
