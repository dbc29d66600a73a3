"""How long a run takes: timed here where it trains, else as long as stored ones took."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from studies.design.plan import Cell, Plan

if TYPE_CHECKING:
    from store.records import Run


@dataclass(frozen=True)
class Took:
    """Seconds of one run on one thread; `stored` counts the runs that say so, 0 if it was timed."""

    seconds: float
    stored: int = 0


def run_times(plan: Plan, storage: str) -> Mapping[Cell, Took | None]:
    """The time of a run of each cell; None where nobody knows.

    A run that is done in a way of its own takes as long as finished ones of its study did: those of
    its arm on its panel, else of its panel, else all. Those of another budget say nothing.

    Raises:
        StoreError: If the address or the file is no database of ours.
    """
    from studies.conducting.estimate import Estimate

    estimate = Estimate()
    timed = {cell: estimate.seconds_of(plan.config(cell)) for cell in plan.cells()}
    finished = _finished(plan, storage) if None in timed.values() else []
    return {
        cell: _of_stored(cell, finished) if seconds is None else Took(seconds)
        for cell, seconds in timed.items()
    }


def _finished(plan: Plan, storage: str) -> "list[Run]":
    """The finished runs of the study with this budget that noted their time."""
    from store.database import exists
    from store.results import Results

    if not exists(storage):
        return []
    results, budget = Results(storage), plan.provenance.get("budget")
    try:
        runs = results.runs(study=plan.study.name, phase=None, status="done")
        return [
            run
            for run in runs
            if run.cpu_seconds is not None and run.provenance.get("budget") == budget
        ]
    finally:
        results.close()


def _of_stored(cell: Cell, finished: "list[Run]") -> Took | None:
    on_panel = [run for run in finished if run.task == cell.task]
    of_arm = [run for run in on_panel if run.arm == cell.arm]
    told = [run.cpu_seconds or 0.0 for run in of_arm or on_panel or finished]
    return Took(sum(told) / len(told), len(told)) if told else None
