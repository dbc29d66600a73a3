"""Small runs with saved weights, done in this process: planned, claimed and finished like any."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from store.ledger import Ledger
from store.records import Run
from studies.execution.worker import Job, SharedProgress, Worker
from studies.experiment.draft import Draft
from studies.experiment.overrides import gather
from studies.experiment.plan import Plan
from studies.experiment.resolve import resolve
from studies.experiment.study import Budget, Study

TINY: dict[str, Any] = {
    "encoder": {
        "d_model": 8, "n_heads": 2, "n_layers": 1, "feedforward": {"name": "gelu", "d_ff": 8},
    },
    "training": {"steps": 2, "batch_size": 4, "warmup_steps": 0, "train_lengths": [2, 6]},
    "evaluation": {"test_lengths": [6, 10], "examples": 12, "batch_size": 5},
    "study": {
        "panels": [{"task": {"name": "shift", "k": 1, "alphabet": 3}}],
        "arms": ["rope", {"table": {"encoder.position": {"name": "learned", "max_length": 10}}}],
        "seeds": 2,
    },
}  # fmt: skip


def draft(**study: Any) -> Draft:
    """A study of two arms, each with two seeds of two steps."""
    settings = {**TINY, "study": {**TINY["study"], **study}}
    made = Study("tiny", "Which?", "Which?", ("encoder.position",), {"own": Budget("", {})})
    return Draft(made, gather(settings))


def plan(**study: Any) -> Plan:
    """The plan of that draft."""
    return resolve(draft(**study))


class Desk:
    """A database with a worker at it, that does what is planned and keeps the weights."""

    def __init__(self, folder: Path, **job: Any) -> None:
        self.url = f"sqlite:///{folder / 'sandbox.db'}"
        self.folder = folder / "sandbox.db-models"
        self.ledger = Ledger.create(self.url)
        self.job = Job(self.url, (), "cpu", 1, 0, **{"save_models": True, **job})

    def do(self, made: Plan) -> list[Run]:
        """Do the confirming runs of a plan."""
        first = made.protocol.tried[0]
        planned = [run for cell in made.cells() for run in made.confirming(cell, first)]
        ids = self.ledger.plan(planned)
        self.work(ids)
        return self.ledger.runs(ids)

    def work(self, ids: Sequence[int], trials: Any = None) -> None:
        """Do the runs that are planned."""
        worker = Worker(self.job, SharedProgress([], _Count(), _Count(), [0], [0]), 0)
        worker.refuse_to_outlive = lambda: None  # type: ignore[method-assign]
        while claim := self.ledger.claim("desk", ids):
            worker.do(claim, self.ledger, trials)


def done_in(folder: Path, **study: Any) -> Desk:
    """A database whose runs are done, with weights; nothing of it is open."""
    desk = Desk(folder)
    desk.do(plan(**study))
    desk.ledger.close()
    return desk


def copied(made: Desk, folder: Path) -> str:
    """The address of a copy of a database and its weights, to be changed."""
    shutil.copytree(made.folder.parent, folder, dirs_exist_ok=True)
    return f"sqlite:///{folder / 'sandbox.db'}"


class _Count:
    value = 0
