"""Look after the weights that a study keeps: what is half written, what was never saved."""

import sys
from collections import Counter
from typing import TYPE_CHECKING

from store.results import Results
from store.weights import ModelFiles

if TYPE_CHECKING:
    from studies.conducting.conduct import Conductor


def remove_halves(conductor: "Conductor", storage: str) -> None:
    """Remove what killed workers left half written."""
    statuses = conductor.ledger.statuses(conductor.ids())
    running = {number for number, status in statuses.items() if status == "running"}
    ModelFiles(storage).remove_halves(running)


def tell_unsaved(conductor: "Conductor", storage: str) -> None:
    """Say on standard error which finished runs have no weights, and how to get them."""
    results = Results(storage)
    try:
        saved = {one.run_id for one in results.models(study=conductor.plan.study.name)}
    finally:
        results.close()
    lacking = Counter(
        cell.arm
        for cell, runs in conductor.runs().items()
        for run in runs
        if run.phase == "confirm" and run.status == "done" and run.id not in saved
    )
    if lacking:
        again = " ".join(f"--rerun {arm}" for arm in lacking)
        arms = ", ".join(f"{count} of {arm}" for arm, count in lacking.items())
        print(
            f"note: {lacking.total()} finished runs have no saved weights ({arms}): they were "
            f"done without --save-models; {again} does them again and keeps them",
            file=sys.stderr,
        )
