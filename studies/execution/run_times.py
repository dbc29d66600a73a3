"""The time of a run: measured here if it trains, else that of stored runs."""

import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from registry.build import threads
from store.database import exists
from store.results import Results
from studies.errors import BrokenModelError, model_answers, model_is_built
from studies.experiment.draft import Draft
from studies.experiment.match import tokens_of
from studies.experiment.plan import Cell
from studies.scoring import batch_loss, predict
from studies.seeds import Seeds
from studies.training.data import trained_lengths
from studies.training.models import build_model
from studies.training.settings import RunConfig, task_of
from variants.positions import BeyondTableError

if TYPE_CHECKING:
    from store.records import Run


@dataclass(frozen=True)
class RunTime:
    """Seconds of one run on one thread; `stored` counts the runs that say so, 0 if it was timed."""

    seconds: float
    stored: int = 0


def run_times(draft: Draft, storage: str) -> Mapping[Cell, RunTime | None]:
    """The time of a run of each cell; None where nobody knows.

    A run that is done in a way of its own takes as long as finished ones of its study did: those of
    its arm on its task, else of its task, else all. Those of another budget say nothing.

    Raises:
        StoreError: If the address or the file is no database of ours.
    """
    estimate = Estimate()
    timed = {cell: estimate.seconds_of(draft.config(cell)) for cell in draft.cells()}
    finished = _finished(draft, storage) if None in timed.values() else []
    return {
        cell: _of_stored(cell, finished) if seconds is None else RunTime(seconds)
        for cell, seconds in timed.items()
    }


def _finished(draft: Draft, storage: str) -> "list[Run]":
    """The finished runs of the study with this budget that noted their time."""
    if not exists(storage):
        return []
    with closing(Results(storage)) as results:
        runs = results.runs(study=draft.study.name, phase=None, status="done")
        return [
            run
            for run in runs
            if run.cpu_seconds is not None and run.provenance.get("budget") == draft.budget
        ]


def _of_stored(cell: Cell, finished: "list[Run]") -> RunTime | None:
    on_panel = [run for run in finished if run.task == cell.task]
    of_arm = [run for run in on_panel if run.arm == cell.arm]
    told = [run.cpu_seconds or 0.0 for run in of_arm or on_panel or finished]
    return RunTime(sum(told) / len(told), len(told)) if told else None


STEPS = 4
"""Number of timed steps, after a first one that is slower."""
ROWS = 8
"""Number of sequences to time scoring with."""


class Estimate:
    """Seconds of a run on one thread; models of one make are timed once."""

    def __init__(self) -> None:
        self._speeds: dict[str, tuple[float, float] | None] = {}

    def seconds_of(self, config: RunConfig) -> float | None:
        """Seconds of one run; None where nobody knows: nothing is trained, or the model raises."""
        if config.task is None or config.perform is not None:
            return None
        key = repr(_make(config))
        if key not in self._speeds:
            try:
                self._speeds[key] = _timed(config)
            except BrokenModelError:
                self._speeds[key] = None
        speeds = self._speeds[key]
        if speeds is None:
            return None
        trained, scored = speeds
        return trained * tokens_of(config) + scored * _scored_tokens(config)


def _make(config: RunConfig) -> list[Any]:
    """The part of a config that decides about speed; the number of symbols hardly does."""
    sizes = ("vocab_size", "n_classes")
    given = {} if config.encoder is None else dict(config.encoder)
    encoder = {key: value for key, value in given.items() if key not in sizes}
    training = config.training
    lengths = (training.train_lengths, max(config.evaluation.test_lengths))
    seq = task_of(config.task).seq(training.train_lengths[1])
    return [encoder, config.model, training.batch_size, training.dtype, lengths, seq]


def _scored_tokens(config: RunConfig) -> int:
    """Tokens of all test sets; those of validation are few beside them."""
    task, settings = task_of(config.task), config.evaluation
    tokens = sum(task.seq(length) for length in settings.test_lengths) * settings.examples
    return tokens * settings.position_draws


@threads()
def _timed(config: RunConfig) -> tuple[float, float]:
    """Seconds a token of training, and of scoring.

    Raises:
        BrokenModelError: If the model raises an error.
    """
    with model_is_built():
        model = build_model(config, Seeds(0, 0)).to(getattr(torch, config.training.dtype))
    with model_answers():
        return _training(model, config), _scoring(model, config)


def _training(model: torch.nn.Module, config: RunConfig) -> float:
    """Seconds per token at the mean length; the optimizer, slow to import, is left out."""
    task, times = task_of(config.task), [0.0]
    mean = round(sum(trained_lengths(task, config.training)) / 2)
    drawn, positions = (torch.Generator().manual_seed(0) for _ in range(2))
    batch = task.sample(drawn, config.training.batch_size, mean)
    model.train()
    for _ in range(STEPS + 1):
        batch_loss(model, batch, torch.device("cpu"), positions).backward()
        times.append(time.perf_counter())
    return (times[-1] - times[1]) / STEPS / batch.tokens.numel()


def _scoring(model: torch.nn.Module, config: RunConfig) -> float:
    """At the longest tested length that the model takes, the dearest a token."""
    task = task_of(config.task)
    for length in sorted(config.evaluation.test_lengths, reverse=True):
        batch = task.sample(torch.Generator().manual_seed(0), ROWS, length)
        start = time.perf_counter()
        with suppress(BeyondTableError):
            predict(model.eval(), batch, torch.device("cpu"))
            return (time.perf_counter() - start) / batch.tokens.numel()
    return 0.0
