"""A worker process: claims runs, does them, and writes what came out."""

import os
import platform
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from store.ledger import Ledger
    from store.records import Claim, Model
    from store.weights import ModelFiles
    from studies.execution.trials import Trials
    from studies.training.outcome import Outcome


LEASE_SECONDS = 120.0
RENEW_SECONDS = 20.0
IDLE_SECONDS = 0.1


class Stopped(BaseException):
    """The worker was asked to stop, or its parent is gone; no variant's code may swallow this."""


@dataclass(frozen=True)
class Job:
    """The settings of a worker: database, plug-ins, device, what to keep."""

    url: str
    plugins: tuple[str, ...]
    device: str
    threads: int
    parent: int
    save_models: bool = False


@dataclass
class SharedProgress:
    """The memory that parent and workers share: ids of runs, and steps done by each worker.

    `at_hand` are those of the run that a worker is at.
    """

    ids: Any
    count: Any
    closed: Any
    steps: Any
    at_hand: Any

    @classmethod
    def new(cls, context: Any, capacity: int, workers: int) -> "SharedProgress":
        return cls(
            context.Array("q", capacity),
            context.Value("q", 0),
            context.Value("b", 0),
            context.Array("q", workers),
            context.Array("q", workers),
        )

    def publish(self, run_ids: Sequence[int]) -> None:
        """Show these runs to the workers, besides those shown before."""
        start = self.count.value
        self.ids[start : start + len(run_ids)] = list(run_ids)
        self.count.value = start + len(run_ids)

    def shown(self) -> list[int]:
        """The runs shown so far."""
        return self.ids[: self.count.value]


def work(job: Job, shared: SharedProgress, slot: int) -> None:
    """Do runs until asked to stop; the entry point of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = Worker(job, shared, slot)
    signal.signal(signal.SIGTERM, worker.stop)
    with suppress(Stopped):
        worker.loop()


class Worker:
    """A worker: claims published runs one after another, and does them.

    `slot` is its place in the memory that it shares with its parent.
    """

    def __init__(self, job: Job, shared: SharedProgress, slot: int) -> None:
        self.job, self.shared, self.slot = job, shared, slot
        self.name = this_process()
        self.stopping = False
        self.claim: Claim | None = None
        self.renewed = 0.0

    def stop(self, number: int, frame: object) -> None:
        self.stopping = True

    def loop(self) -> None:
        import torch

        from registry.plugins import load
        from store.ledger import Ledger
        from studies.execution.trials import Trials

        torch.set_num_threads(self.job.threads)
        for plugin in self.job.plugins:
            load(plugin)
        ledger, trials = Ledger.open(self.job.url), Trials(self.job.url)
        while not self.shared.closed.value:
            self.refuse_to_outlive()
            self.claim = ledger.claim(self.name, self.shared.shown(), LEASE_SECONDS)
            if self.claim is None:
                time.sleep(IDLE_SECONDS)
            else:
                self.do(self.claim, ledger, trials)

    def do(self, claim: "Claim", ledger: "Ledger", trials: "Trials") -> None:
        """Do one claimed run; a failure is written down, a stop hands the run back."""
        run, trial = claim.run, None
        if run.phase == "tune":
            trial = trials.begin(run, claim.attempt)
            ledger.attach_trial(claim, *trial)
        try:
            outcome = self.outcome(claim, ledger)
        except Stopped:
            ledger.release(claim)
            if trial is not None:
                trials.end(*trial, nll=None)
            raise
        written = self.write(claim, ledger, outcome)
        self.shared.at_hand[self.slot] = 0
        if written and trial is not None:
            from studies.experiment.tune import validation_nll  # which loads torch

            trials.end(*trial, nll=validation_nll(outcome.scores))

    def write(self, claim: "Claim", ledger: "Ledger", outcome: "Outcome") -> bool:
        """Write an outcome; one that cannot be stored is a failed run."""
        from store.errors import StoreError
        from studies.training.outcome import Outcome

        model, kept = None, False
        try:
            model = self.kept_weights(claim, ledger, outcome)
            kept = written = ledger.finish(claim, **outcome.columns(), model=model)
        except StoreError as error:
            told = f"{type(error).__name__}: {error}"
            written = ledger.finish(claim, **Outcome("failed", told).columns())
        if model is not None and not kept:
            self.files.remove(model.path)
        return written

    def kept_weights(self, claim: "Claim", ledger: "Ledger", outcome: "Outcome") -> "Model | None":
        """Write the file of a confirming run's weights, if it is to have one."""
        wanted = self.job.save_models and claim.run.phase == "confirm"
        # A worker that lost the run writes none; else the lease lasts until the run is stored.
        if not wanted or outcome.model is None or not ledger.renew(claim, LEASE_SECONDS):
            return None
        from studies.training.saved_models import content_of

        return self.files.write(claim, content_of(outcome.model, claim.run))

    @property
    def files(self) -> "ModelFiles":
        """The files of weights beside the database."""
        from store.weights import ModelFiles

        return ModelFiles(self.job.url)

    def outcome(self, claim: "Claim", ledger: "Ledger") -> "Outcome":
        import torch

        from studies.errors import in_one_line
        from studies.training.execute import execute
        from studies.training.outcome import Outcome
        from studies.training.settings import check_run

        self.renewed = time.monotonic()

        def tick() -> None:
            self.refuse_to_outlive()
            if time.monotonic() - self.renewed > RENEW_SECONDS:
                self.renewed = time.monotonic()
                ledger.renew(claim, LEASE_SECONDS)

        def after_step() -> None:
            self.shared.steps[self.slot] += 1
            self.shared.at_hand[self.slot] += 1
            tick()

        try:
            config = check_run(claim.run.config)
            device = torch.device(self.job.device)
            return execute(config, claim.run.seed, device, after_step, tick)
        except Stopped:
            raise
        except BaseException as error:  # whatever a variant raises is the result of its run
            return Outcome("failed", in_one_line(error))

    def refuse_to_outlive(self) -> None:
        """Stop when asked to, or when the parent is gone."""
        if self.stopping or os.getppid() != self.job.parent:
            raise Stopped


def this_process() -> str:
    """The name of this process, told apart from a later one with the same number."""
    return f"{platform.node()}/{os.getpid()}/{_started(os.getpid())}"


def is_alive(worker: str) -> bool:
    """Return whether a worker is alive; on another machine, where only its lease decides, True."""
    host, _, rest = worker.partition("/")
    if host != platform.node():
        return True
    pid, _, started = rest.partition("/")
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _started(int(pid)) == started


def _started(pid: int) -> str:
    """When a process started, in the clock ticks of the kernel; "?" where it does not say."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "?"
    # The name in brackets may itself hold spaces and brackets.
    fields = text.rpartition(")")[2].split()
    return "?" if fields[0] == "Z" else fields[19]
