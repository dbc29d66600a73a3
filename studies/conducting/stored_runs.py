"""How many runs of a plan a database holds already."""

from collections.abc import Mapping

from studies.design.plan import Cell, Plan

DONE = ("done", "diverged", "not_applicable")
"""Runs that are results; one that failed is done again by the next call."""


def stored_runs(plan: Plan, storage: str) -> Mapping[Cell, int]:
    """The runs of each cell that need not be done again; none where there is no database yet.

    Raises:
        StoreError: If the address or the file is no database of ours.
    """
    from store.database import exists
    from store.results import Results
    from studies.report.stored import Stored

    if not exists(storage):
        return dict.fromkeys(plan.cells(), 0)
    results = Results(storage)
    try:
        stored = Stored(plan, results)
        return {
            cell: sum(
                run.status in DONE
                for run in (*stored.tuning(cell), *stored.confirming.get(cell, ()))
            )
            for cell in plan.cells()
        }
    finally:
        results.close()
