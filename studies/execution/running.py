"""Run a study: resolve its plan, do what is missing of it, let its search add arms."""

import shlex
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from registry.config import hash_of, without_defaults
from registry.errors import UnknownNameError
from store.database import exists
from store.ledger import Ledger
from store.provenance import environment_facts, git_facts
from store.results import Results
from store.weights import ModelFiles
from studies.analysis.gather import StoredRuns, results_of
from studies.analysis.summaries import is_settled, points
from studies.errors import InterruptedStudyError
from studies.execution.scheduler import Origin, Scheduler, job_for
from studies.execution.trials import Trials
from studies.exit_codes import INTERRUPTED, TERMINATED
from studies.experiment.draft import Draft
from studies.experiment.freeze import freeze, kept_for
from studies.experiment.plan import Plan, plan_in
from studies.experiment.resolve import resolve
from studies.experiment.search import grow
from studies.experiment.study import Study
from studies.training.execute import device_facts

if TYPE_CHECKING:
    from store.records import Run


class Terminated(BaseException):
    """The process was asked to end by SIGTERM."""


@dataclass(frozen=True)
class Call:
    """The options of a call: database, workers, device, what to keep."""

    storage: str
    device: str = "cpu"
    workers: int = 2
    threads: int = 1
    plugins: Sequence[str] = ()
    rerun: Sequence[str] = ()
    report: Path | None = None
    save_models: bool = False

    def check(self, arms: Iterable[str]) -> None:
        """Refuse a call that no run could mend.

        Raises:
            UnknownNameError: If an arm is to be done again that the call does not ask for.
        """
        known = list(arms)
        for arm in self.rerun:
            if arm not in known:
                raise UnknownNameError("arm of this call", arm, known)


def run(draft: Draft, call: Call) -> Plan:
    """Do the missing runs of a study; return its plan, with all arms that its search added.

    A study that is stored as it is asked for is left as it is: nothing is written.
    """
    call.check(draft.arms)
    command = shlex.join([*draft.study.launcher.split(), *arguments_of(draft.study)])
    known = stored_plan(call.storage, draft.study.name)
    with closing(_Work(call, Ledger.create(call.storage))) as work:
        while True:
            plan = known = replace(resolve(draft, known), command=command)
            if call.rerun or not _is_done(plan, call.storage):
                work.do(plan, draft.study)
            more = _grown(draft, plan, work)
            if more is None:
                return plan
            draft = more


def stored_plan(storage: str, study: str) -> Plan | None:
    """The plan of the latest call of a study; None where none is stored."""
    if not exists(storage):
        return None
    with closing(Results(storage)) as results:
        return plan_in(results, study)


def _is_done(plan: Plan, storage: str) -> bool:
    """Return whether this is the plan of the latest call, and all its runs are done."""
    latest = stored_plan(storage, plan.study)
    if latest is None or not plan.is_part_of(latest):
        return False
    with closing(Results(storage)) as results:
        frozen = kept_for(plan, results) is not None
        return frozen and StoredRuns(plan, results).complete


class _Work:
    """The ledger, and Optuna's mirror once it is needed, of a call whose plan may grow."""

    def __init__(self, call: Call, ledger: Ledger) -> None:
        self.call, self.ledger = call, ledger
        self.trials: Trials | None = None

    def close(self) -> None:
        """Close the connections; the last one empties SQLite's log into the file."""
        if self.trials is not None:
            self.trials.close()
        self.ledger.close()

    def do(self, plan: Plan, study: Study) -> None:
        """Plan the runs of a plan, and do those that are missing."""
        call = self.call
        warn_of_namesake(study, self.ledger.describe_study(plan.study, plan.text))
        self.trials = self.trials or Trials(call.storage)
        scheduler = Scheduler(plan, self.ledger, self.trials, self._origin(study))
        scheduler.recover([arm for arm in call.rerun if arm in plan.arms])
        with closing(Results(call.storage)) as results:
            freeze(plan, self.ledger, results, scheduler.final_ids())
        remove_halves(scheduler, call.storage)
        if scheduler.unfinished():
            _conduct(scheduler, call)

    def _origin(self, study: Study) -> Origin:
        facts = {"torch": device_facts(self.call.device), "threads": self.call.threads}
        return Origin(
            self.ledger.environment(environment_facts(facts)),
            {
                "command": arguments_of(study),
                "git": git_facts(Path(__file__).parent),
                "device": self.call.device,
            },
        )


def arguments_of(study: Study) -> list[str]:
    """The command-line arguments of a study; one of several studies is named in them."""
    words = sys.argv[1:]
    if study.called and words and not words[0].startswith("-"):
        return [study.name, *words[1:]]
    return words


def warn_of_namesake(study: Study, before: str | None) -> None:
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


def _grown(draft: Draft, plan: Plan, work: _Work) -> Draft | None:
    """The study with what its search adds next, which Optuna's own tools see as well."""
    search = plan.search
    if search is None:
        return None
    results = results_of(plan, work.call.storage)
    reached = points(results)
    if work.trials is not None:
        name = f"{plan.study}/search/{hash_of(without_defaults(search))[:8]}"
        directions = list(search.objectives.values())
        work.trials.keep_points(name, search.space, directions, reached)
    return grow(draft, reached) if is_settled(results) else None


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
        told = (
            f"Interrupted: {scheduler.finished()} of {scheduler.expected()} runs finished. "
            "Rerun the command to resume."
        )
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else TERMINATED
        raise InterruptedStudyError(told, code) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        remove_halves(scheduler, call.storage)


def remove_halves(scheduler: Scheduler, storage: str) -> None:
    """Remove what killed workers left half written."""
    statuses = scheduler.ledger.statuses(scheduler.ids())
    running = {number for number, status in statuses.items() if status == "running"}
    ModelFiles(storage).remove_halves(running)


def unsaved(plan: Plan, stored: StoredRuns) -> Mapping[str, int]:
    """The number of finished runs of each arm without saved weights."""
    saved = {one.run_id for one in stored.results.models(study=plan.study)}
    done: Iterable[Run] = (run for cell in plan.cells() for run in stored.final(cell))
    return Counter(run.arm for run in done if run.status == "done" and run.id not in saved)
