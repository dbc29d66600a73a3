"""Do the runs of a study whose plan is checked."""

import signal
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
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
from studies.errors import InterruptedStudyError
from studies.execution.scheduler import Scheduler, job_for
from studies.exit_codes import INTERRUPTED, TERMINATED
from studies.experiment.freeze import freeze
from studies.experiment.plan import Plan
from studies.experiment.study import Study

if TYPE_CHECKING:
    from store.ledger import Ledger
    from store.records import Frozen as Kept


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


@dataclass(frozen=True)
class Finished:
    """The runs of a plan after a call, and its family as it was frozen."""

    scheduler: Scheduler
    kept: "Kept"


def run(plan: Plan, call: Call) -> Finished:
    """Do what is missing of a plan.

    Raises:
        WorkerError: If workers cannot start.
        InterruptedStudyError: If it was stopped before all was done.
    """
    from store.database import make_engine
    from store.ledger import Ledger
    from studies.execution.trials import Trials

    call.check(plan)
    if call.report is not None:
        from studies.report.files import make_folder

        make_folder(call.report)  # which may fail, and should before anything is trained
    ledger = Ledger.create(call.storage)
    tell_namesake(plan.study, ledger.describe_study(plan.study.name, plan.study.text))
    grown: Plan | None = _with_provenance(plan, call, ledger)
    trials = Trials(call.storage)
    while grown is not None:
        scheduler = Scheduler(grown, ledger, trials)
        scheduler.recover([arm for arm in call.rerun if arm in grown.arms])
        confirming = [number for numbers in scheduler.confirming.values() for number in numbers]
        with closing(Results(call.storage)) as results:
            kept = freeze(grown, ledger, results, confirming)
        remove_halves(scheduler, call.storage)
        if scheduler.unfinished():
            _conduct(scheduler, call)
        grown = _grown(scheduler)
    # A reader refuses a file that was moved away or deleted meanwhile.
    make_engine(call.storage, readonly=True).dispose()
    return Finished(scheduler, kept)


def _with_provenance(plan: Plan, call: Call, ledger: "Ledger") -> Plan:
    """The plan with the machine and the commit that its runs are done with."""
    from store.provenance import environment_facts, git_facts
    from studies.training.execute import device_facts

    facts = environment_facts({"torch": device_facts(call.device), "threads": call.threads})
    git = git_facts(Path(__file__).parent)
    provenance = {**plan.provenance, "git": git, "device": call.device}
    return replace(plan, environment_id=ledger.environment(facts), provenance=provenance)


def tell_namesake(study: Study, before: str | None) -> None:
    """Say so where the database holds a study of this name that asked something else."""
    asked, asks = (_first_line(text) for text in (before or "", study.text))
    if asked and asked != asks:
        print(
            f"Note: study {study.name} in this database asked so far: {asked} Its runs and those "
            "of this call count as one study; if they are two, rename one.",
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
            f"Interrupted: {finished} of {scheduler.expected()} runs finished. "
            "Rerun the command to resume."
        )
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else TERMINATED
        raise InterruptedStudyError(told, code) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        remove_halves(scheduler, call.storage)


def results_of(scheduler: Scheduler) -> list[ArmResult]:
    """What the stored runs of a plan say, arm by arm."""
    # What a diverged seed counts as is added further on.
    scores = [one for one in scheduler.ledger.scores(scheduler.ids()) if not one.imputed]
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


def remove_halves(scheduler: "Scheduler", storage: str) -> None:
    """Remove what killed workers left half written."""
    statuses = scheduler.ledger.statuses(scheduler.ids())
    running = {number for number, status in statuses.items() if status == "running"}
    ModelFiles(storage).remove_halves(running)
