"""Run a study whose plan is checked: through its runs, to its answer."""

import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from registry.config import hash_of, without_defaults
from registry.errors import UnknownNameError
from store.results import Results
from store.weights import ModelFiles
from studies.analysis.choice import alternatives
from studies.analysis.results import ArmResult, gather_results
from studies.analysis.search import grow, points
from studies.errors import FailedRunsError, InterruptedStudyError
from studies.execution.scheduler import Scheduler, job_for
from studies.exit_codes import INTERRUPTED, TERMINATED
from studies.experiment.freeze import freeze, frozen_for
from studies.experiment.plan import Plan
from studies.experiment.study import Study

if TYPE_CHECKING:
    from store.records import Frozen as Kept
    from studies.analysis.verdicts import Verdict


class Terminated(BaseException):
    """The process was asked to end by SIGTERM."""


@dataclass(frozen=True)
class Call:
    """How the runs of one call are done: where they are stored, who does them, what is kept."""

    storage: str
    device: str
    workers: int
    threads: int
    plugins: Sequence[str]
    rerun: Sequence[str]
    report: Path | None = None
    save_models: bool = False

    def check(self, plan: Plan) -> None:
        """Refuse a call that no run could mend.

        Raises:
            UnknownNameError: If an arm is to be done again that the call does not ask for.
        """
        for arm in self.rerun:
            if arm not in plan.arms:
                raise UnknownNameError("arm of this call", arm, list(plan.arms))


def run(plan: Plan, call: Call) -> "list[Verdict]":
    """Do what is missing of a plan, print its answer, and return its verdicts."""
    from store.database import make_engine
    from store.ledger import Ledger
    from store.provenance import environment_facts, git_facts
    from store.results import Results
    from studies.execution.trials import Trials
    from studies.training.execute import device_facts

    call.check(plan)
    if call.report is not None:
        from studies.report.files import make_folder

        make_folder(call.report)  # which may fail, and should before anything is trained
    ledger = Ledger.create(call.storage)
    tell_namesake(plan.study, ledger.describe_study(plan.study.name, plan.study.text))
    facts = environment_facts({"torch": device_facts(call.device), "threads": call.threads})
    here = Path(__file__).parent
    provenance = {**plan.provenance, "git": git_facts(here), "device": call.device}
    plan = replace(plan, environment_id=ledger.environment(facts), provenance=provenance)
    trials = Trials(call.storage)
    grown: Plan | None = plan
    while grown is not None:
        scheduler = Scheduler(grown, ledger, trials)
        scheduler.recover([arm for arm in call.rerun if arm in grown.arms])
        confirming = [number for numbers in scheduler.confirming.values() for number in numbers]
        results = Results(call.storage)
        kept = freeze(grown, ledger, results, confirming)
        results.close()
        remove_halves(scheduler, call.storage)
        if scheduler.unfinished():
            _conduct(scheduler, call)
        grown = _grown(scheduler)
    # A reader refuses a file that was moved away or deleted meanwhile.
    make_engine(call.storage, readonly=True).dispose()
    for arm, run_ids in scheduler.changed().items():
        print(
            f"note: the source of arm {arm} has changed since {len(run_ids)} of its runs (the "
            f"first is {run_ids[0]}); --rerun {arm} does them again",
            file=sys.stderr,
        )
    if call.save_models:
        tell_unsaved(scheduler, call.storage)
    return _print_answer(scheduler, kept, call)


def tell_namesake(study: Study, before: str | None) -> None:
    """Say so where the database holds a study of this name that asked something else."""
    asked, asks = (_first_line(text) for text in (before or "", study.text))
    if asked and asked != asks:
        print(
            f"note: study {study.name} of this database asked until now: {asked} Its runs and "
            "those of this call count as one study; if they are two, give one another name",
            file=sys.stderr,
        )


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _grown(scheduler: Scheduler) -> Plan | None:
    """The plan with what its search adds next, which Optuna's own tools see as well."""
    plan, search = scheduler.plan, scheduler.plan.settings.study.search
    if search is None:
        return None
    gathered = results_of(scheduler)
    name = f"{plan.study.name}/search/{hash_of(without_defaults(search))[:8]}"
    directions = list(search.objectives.values())
    scheduler.trials.keep_points(name, search.space, directions, points(plan, gathered))
    return grow(plan, gathered)


def _conduct(scheduler: Scheduler, call: Call) -> None:
    """Do the runs, and say how to go on when stopped."""
    from studies.execution.progress import Display

    def terminate(number: int, frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    job = job_for(call.storage, call.plugins, call.device, call.threads, call.save_models)
    try:
        with Display(scheduler.plan) as display:
            scheduler.conduct(job, call.workers, display.show)
    except (KeyboardInterrupt, Terminated) as error:
        finished = sum(
            run.status not in ("planned", "running")
            for runs in scheduler.runs().values()
            for run in runs
        )
        told = (
            f"stopped: {finished} of {scheduler.expected()} runs are stored; "
            "the same command goes on from here"
        )
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else TERMINATED
        raise InterruptedStudyError(told, code) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        remove_halves(scheduler, call.storage)


def results_of(scheduler: Scheduler) -> list[ArmResult]:
    """What the stored runs of a plan say, arm by arm."""
    scores = scheduler.ledger.scores(scheduler.ids())
    of_run: dict[int, list[Any]] = defaultdict(list)
    for score in scores:
        if not score.later:
            of_run[score.run_id].append(score)
    others = {
        cell: alternatives(
            scheduler.plan,
            cell,
            chosen,
            scheduler.tried(cell),
            [score for number in scheduler.tuning[cell] for score in of_run[number]],
        )
        for cell, chosen in scheduler.chosen.items()
        if scheduler.tuning[cell]
    }
    return gather_results(scheduler.plan, scheduler.runs(), scores, scheduler.chosen, others)


def _print_answer(scheduler: Scheduler, kept: "Kept", call: Call) -> "list[Verdict]":
    from rich.console import Console

    from studies.analysis.printing import print_answer, print_front, print_overall, print_verdicts
    from studies.analysis.search import best
    from studies.analysis.summaries import overall
    from studies.analysis.verdicts import verdicts
    from studies.experiment.contrasts import unasked

    # Away from a terminal nobody folds lines, and a table must not be cut.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    gathered = results_of(scheduler)
    judged = verdicts(scheduler.plan, gathered, frozen_for(scheduler.plan, kept))
    print_verdicts(console, judged, unasked(scheduler.plan))
    (scheduler.plan.study.show or print_answer)(console, scheduler.plan, gathered)
    print_overall(console, overall(scheduler.plan, gathered))
    print_front(console, scheduler.plan, best(scheduler.plan, gathered))
    runs = scheduler.runs()
    stored = [run for of_cell in runs.values() for run in of_cell]
    print(f"\n{len(stored)} runs in {call.storage}; `python -m store scores` queries them.")
    if call.report is not None:
        from studies.report.make import make_report

        print(f"report: {make_report(scheduler.plan, call.storage, call.report)}")
    failed = [run for run in stored if run.status == "failed"]
    for run in failed[:5]:
        print(f"run {run.id} ({run.task}, {run.arm}) failed: {run.reason}", file=sys.stderr)
    if failed:
        raise FailedRunsError(f"{len(failed)} runs failed; the same command tries them again")
    return judged


def remove_halves(scheduler: "Scheduler", storage: str) -> None:
    """Remove what killed workers left half written."""
    statuses = scheduler.ledger.statuses(scheduler.ids())
    running = {number for number, status in statuses.items() if status == "running"}
    ModelFiles(storage).remove_halves(running)


def tell_unsaved(scheduler: "Scheduler", storage: str) -> None:
    """Say on standard error which finished runs have no weights, and how to get them."""
    results = Results(storage)
    try:
        saved = {one.run_id for one in results.models(study=scheduler.plan.study.name)}
    finally:
        results.close()
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
            f"note: {lacking.total()} finished runs have no saved weights ({arms}): they were "
            f"done without --save-models; {again} does them again and keeps them",
            file=sys.stderr,
        )
