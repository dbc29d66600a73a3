"""Print what a study found, once its runs are done."""

import sys
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studies.analysis.verdicts import Verdict
    from studies.execution.running import Call, Finished
    from studies.execution.scheduler import Scheduler


def show_answer(finished: "Finished", call: "Call") -> "list[Verdict]":
    """Print the answer of a study, write its report where one is asked for; return the verdicts.

    Raises:
        FailedRunsError: If runs failed.
    """
    from rich.console import Console

    from studies.analysis.printing import print_answer, print_front, print_overall, print_verdicts
    from studies.analysis.search import best
    from studies.analysis.summaries import overall
    from studies.analysis.verdicts import verdicts
    from studies.execution.running import results_of
    from studies.experiment.contrasts import unasked
    from studies.experiment.freeze import frozen_for

    scheduler, plan = finished.scheduler, finished.scheduler.plan
    _warn_of_changed_code(scheduler)
    if call.save_models:
        _note_missing_weights(scheduler, call.storage)
    # Away from a terminal nobody folds lines, and a table must not be cut.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    gathered = results_of(scheduler)
    judged = verdicts(plan, gathered, frozen_for(plan, finished.kept))
    print_verdicts(console, judged, unasked(plan))
    (plan.study.show or print_answer)(console, plan, gathered)
    print_overall(console, overall(plan, gathered))
    print_front(console, plan, best(plan, gathered))
    stored = [run for of_cell in scheduler.runs().values() for run in of_cell]
    print(f"\n{len(stored)} runs in {call.storage}; `python -m store scores` queries them.")
    if call.report is not None:
        from studies.report.make import make_report

        print(f"report: {make_report(plan, call.storage, call.report)}")
    _refuse_failed(scheduler)
    return judged


def _refuse_failed(scheduler: "Scheduler") -> None:
    """Name the runs that failed.

    Raises:
        FailedRunsError: If there are any.
    """
    from studies.errors import FailedRunsError

    stored = [run for of_cell in scheduler.runs().values() for run in of_cell]
    failed = [run for run in stored if run.status == "failed"]
    for run in failed[:5]:
        print(f"run {run.id} ({run.task}, {run.arm}) failed: {run.reason}", file=sys.stderr)
    if failed:
        raise FailedRunsError(f"{len(failed)} runs failed. Run the same command to retry them.")


def _warn_of_changed_code(scheduler: "Scheduler") -> None:
    for arm, run_ids in scheduler.changed().items():
        print(
            f"Warning: the code of arm {arm!r} changed after {len(run_ids)} of its runs (first: "
            f"run {run_ids[0]}). Use --rerun {arm} to repeat them.",
            file=sys.stderr,
        )


def _note_missing_weights(scheduler: "Scheduler", storage: str) -> None:
    """Say on standard error which finished runs have no weights, and how to get them."""
    from store.results import Results

    with closing(Results(storage)) as results:
        saved = {one.run_id for one in results.models(study=scheduler.plan.study.name)}
    lacking = Counter(
        cell.arm
        for cell, runs in scheduler.runs().items()
        for run in runs
        if run.phase == "confirm" and run.status == "done" and run.id not in saved
    )
    if lacking:
        again = " ".join(f"--rerun {arm}" for arm in lacking)
        arms = ", ".join(f"{count} of {arm}" for arm, count in lacking.items())
        print(
            f"Note: {lacking.total()} finished runs have no saved weights ({arms}): they were "
            f"done without --save-models. Use {again} to repeat them and keep the weights.",
            file=sys.stderr,
        )
