"""The ending of a call: notes, verdicts, tables, failed runs."""

import sys
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from rich.console import Console

from store.results import Results
from studies.analysis.gather import StoredRuns, gather
from studies.analysis.printing import print_answer, print_front, print_overall, print_verdicts
from studies.analysis.results import StudyResults
from studies.analysis.sentences import changed_code
from studies.analysis.summaries import best, overall
from studies.analysis.verdicts import Verdict, verdicts
from studies.errors import FailedRunsError
from studies.execution.running import Call, unsaved
from studies.experiment.freeze import frozen_for, kept_for
from studies.experiment.hypothesis import Frozen
from studies.experiment.plan import Plan
from studies.experiment.study import Study

if TYPE_CHECKING:
    from store.records import Run

FEW = 5
"""Number of failed runs to name one by one."""


def show_answer(study: Study, plan: Plan, call: Call) -> list[Verdict]:
    """Print what is stored of a plan, make its report where one is asked for; return its verdicts.

    Raises:
        FailedRunsError: If some of its runs failed.
    """
    with closing(Results(call.storage)) as results:
        stored = StoredRuns(plan, results)
        kept, found = kept_for(plan, results), gather(stored)
        _print_notes(plan, stored, call, found.changed)
        frozen = Frozen((), ()) if kept is None else frozen_for(plan, kept)
        cells = plan.cells()
        runs = [run for cell in cells for run in (*stored.tuning(cell), *stored.final(cell))]
    judged = _print_results(study, found, frozen)
    print(f"\n{len(runs)} runs in {call.storage}; `python -m store scores` queries them.")
    if call.report is not None:
        from studies.report.files import make_report

        print(f"report: {make_report(plan, call.storage, call.report)}")
    _refuse_failed([run for run in runs if run.status == "failed"])
    return judged


def _print_notes(
    plan: Plan, stored: StoredRuns, call: Call, changed: Mapping[str, list[int]]
) -> None:
    """Say on standard error what a reader of the answer must know, and how it is mended."""
    for arm, runs in changed.items():
        told = f"Warning: {changed_code(arm, runs)} Use --rerun {arm} to repeat them."
        print(told, file=sys.stderr)
    lacking = unsaved(plan, stored) if call.save_models else {}
    if lacking:
        again = " ".join(f"--rerun {arm}" for arm in lacking)
        arms = ", ".join(f"{count} of {arm}" for arm, count in lacking.items())
        print(
            f"Note: {sum(lacking.values())} finished runs have no saved weights ({arms}): they "
            f"were done without --save-models. Use {again} to repeat them and keep the weights.",
            file=sys.stderr,
        )


def _print_results(study: Study, results: StudyResults, frozen: Frozen) -> list[Verdict]:
    # Away from a terminal nobody folds lines, and a table must not be cut.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    judged = verdicts(results, frozen)
    print_verdicts(console, judged, results.plan.unasked())
    (study.show or print_answer)(console, results)
    print_overall(console, overall(results))
    print_front(console, results, best(results))
    return judged


def _refuse_failed(failed: "list[Run]") -> None:
    for run in failed[:FEW]:
        print(f"run {run.id} ({run.task}, {run.arm}) failed: {run.reason}", file=sys.stderr)
    if failed:
        raise FailedRunsError(f"{len(failed)} runs failed. Run the same command to retry them.")
