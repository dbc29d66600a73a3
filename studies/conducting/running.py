"""Run a study whose plan is checked: through its runs, to its answer."""

import signal
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from registry.config import hash_of, without_defaults
from registry.errors import UnknownNameError
from studies.analysis.choice import alternatives
from studies.analysis.results import ArmResult, gather_results
from studies.analysis.search import grow, points
from studies.conducting.command import INTERRUPTED, TERMINATED, WORK_FAILED, fail
from studies.conducting.conduct import Conductor, job_for
from studies.conducting.keeping import remove_halves, tell_unsaved
from studies.design.freezing import freeze, frozen_for
from studies.design.plan import Plan
from studies.design.study import Study

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
    from studies.conducting.search import Trials
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
        conductor = Conductor(grown, ledger, trials)
        conductor.tidy([arm for arm in call.rerun if arm in grown.arms])
        confirming = [number for numbers in conductor.confirming.values() for number in numbers]
        results = Results(call.storage)
        kept = freeze(grown, ledger, results, confirming)
        results.close()
        remove_halves(conductor, call.storage)
        if conductor.unfinished():
            _conduct(conductor, call)
        grown = _grown(conductor)
    # A reader refuses a file that was moved away or deleted meanwhile.
    make_engine(call.storage, readonly=True).dispose()
    for arm, run_ids in conductor.changed().items():
        print(
            f"note: the source of arm {arm} has changed since {len(run_ids)} of its runs (the "
            f"first is {run_ids[0]}); --rerun {arm} does them again",
            file=sys.stderr,
        )
    if call.save_models:
        tell_unsaved(conductor, call.storage)
    return _print_answer(conductor, kept, call)


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


def _grown(conductor: Conductor) -> Plan | None:
    """The plan with what its search adds next, which Optuna's own tools see as well."""
    plan, search = conductor.plan, conductor.plan.settings.study.search
    if search is None:
        return None
    gathered = results_of(conductor)
    name = f"{plan.study.name}/search/{hash_of(without_defaults(search))[:8]}"
    directions = list(search.objectives.values())
    conductor.trials.keep_points(name, search.space, directions, points(plan, gathered))
    return grow(plan, gathered)


def _conduct(conductor: Conductor, call: Call) -> None:
    """Do the runs, and say how to go on when stopped."""
    from studies.conducting.progress import Display

    def terminate(number: int, frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    job = job_for(call.storage, call.plugins, call.device, call.threads, call.save_models)
    try:
        with Display(conductor.plan) as display:
            conductor.conduct(job, call.workers, display.show)
    except (KeyboardInterrupt, Terminated) as error:
        finished = sum(
            run.status not in ("planned", "running")
            for runs in conductor.runs().values()
            for run in runs
        )
        print(
            f"stopped: {finished} of {conductor.expected()} runs are stored; "
            "the same command goes on from here",
            file=sys.stderr,
        )
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else TERMINATED
        raise typer.Exit(code) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        remove_halves(conductor, call.storage)


def results_of(conductor: Conductor) -> list[ArmResult]:
    """What the stored runs of a plan say, arm by arm."""
    # What a diverged seed counts as is added further on.
    scores = [one for one in conductor.ledger.scores(conductor.ids()) if not one.imputed]
    of_run: dict[int, list[Any]] = defaultdict(list)
    for score in scores:
        if not score.later:
            of_run[score.run_id].append(score)
    others = {
        cell: alternatives(
            conductor.plan,
            cell,
            chosen,
            conductor.tried(cell),
            [score for number in conductor.tuning[cell] for score in of_run[number]],
        )
        for cell, chosen in conductor.chosen.items()
        if conductor.tuning[cell]
    }
    return gather_results(conductor.plan, conductor.runs(), scores, conductor.chosen, others)


def _print_answer(conductor: Conductor, kept: "Kept", call: Call) -> "list[Verdict]":
    from rich.console import Console

    from studies.analysis.printing import print_answer, print_front, print_overall, print_verdicts
    from studies.analysis.search import best
    from studies.analysis.summaries import overall
    from studies.analysis.verdicts import verdicts
    from studies.design.contrasts import unasked

    # Away from a terminal nobody folds lines, and a table must not be cut.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    gathered = results_of(conductor)
    judged = verdicts(conductor.plan, gathered, frozen_for(conductor.plan, kept))
    print_verdicts(console, judged, unasked(conductor.plan))
    (conductor.plan.study.show or print_answer)(console, conductor.plan, gathered)
    print_overall(console, overall(conductor.plan, gathered))
    print_front(console, conductor.plan, best(conductor.plan, gathered))
    runs = conductor.runs()
    stored = [run for of_cell in runs.values() for run in of_cell]
    print(f"\n{len(stored)} runs in {call.storage}; `python -m store scores` queries them.")
    if call.report is not None:
        from studies.report.make import make_report

        print(f"report: {make_report(conductor.plan, call.storage, call.report)}")
    failed = [run for run in stored if run.status == "failed"]
    for run in failed[:5]:
        print(f"run {run.id} ({run.task}, {run.arm}) failed: {run.reason}", file=sys.stderr)
    if failed:
        fail(f"{len(failed)} runs failed; the same command tries them again", WORK_FAILED)
    return judged
