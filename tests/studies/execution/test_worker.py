"""A worker by itself: what a variant raises is the end of its run, and of nothing else."""

import gc
import multiprocessing
import os
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from store.ledger import Ledger
from studies.execution import worker
from studies.execution.trials import Trials
from studies.experiment.draft import Draft
from studies.experiment.overrides import gather
from studies.experiment.resolve import resolve
from studies.extrapolation import QUICK, STUDY
from studies.training import execute

TINY = (
    *("study.arms=[none]", "task=shift", "study.seeds=3", "study.learning_rates=[1e-3]"),
    *("training.steps=2", "evaluation.test_lengths=[16]", "evaluation.examples=4"),
)


def test_a_run_that_is_out_of_memory_fails_by_name_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'sandbox.db'}"
    ledger, trials, plan = (
        Ledger.create(url),
        Trials(url),
        resolve(Draft(STUDY, gather(QUICK, None, TINY))),
    )
    [cell] = plan.cells()
    ids = ledger.plan(plan.confirming(cell, plan.protocol.tried[0]))
    models: list[weakref.ref[nn.Module]] = []
    train = execute.train

    def greedy(model: nn.Module, *others: Any) -> int:
        models.append(weakref.ref(model))
        if len(models) == 1:
            raise torch.OutOfMemoryError("tried to allocate 80 GiB")
        return train(model, *others)

    monkeypatch.setattr(execute, "train", greedy)
    shared = worker.SharedProgress.new(multiprocessing, 8, 1)
    one = worker.Worker(worker.Job(url, (), "cpu", 1, os.getppid()), shared, 0)
    while claim := ledger.claim(one.name, ids, 60.0):
        one.do(claim, ledger, trials)

    first, *others = ledger.runs(ids)
    assert (first.status, [run.status for run in others]) == ("failed", ["done", "done"])
    assert (first.reason or "").startswith("OutOfMemoryError: tried to allocate 80 GiB (")
    gc.collect()
    assert [model() for model in models] == [None] * 3
