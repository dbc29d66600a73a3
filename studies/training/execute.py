"""Do one run: by the function that its config names, or by training a model and scoring it."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch
from torch import nn

from registry.errors import ConfigError, Problem
from studies.scoring import FixedSets
from studies.tasks.task import Task
from studies.training.callbacks import Callbacks
from studies.training.data import trained_lengths
from studies.training.evaluation import evaluate, of_nothing_learned, validation_lengths
from studies.training.loop import Curves, DivergedError, train
from studies.training.models import build_model, width_of
from studies.training.outcome import Measured, Outcome, Work
from studies.training.references import function_of
from studies.training.settings import RunConfig, task_of
from variants.masks import CONVENTION


def execute(
    config: RunConfig,
    replicate: int,
    device: torch.device,
    after_step: Callable[[], None] = lambda: None,
    between_batches: Callable[[], None] = lambda: None,
) -> Outcome:
    """Do one replicate of a config.

    The numbers depend on the config, the replicate, the machine and its thread count alone.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    work = Work(config, replicate, device, after_step, between_batches)
    if config.perform is None:
        outcome = train_and_score(work)
    else:
        outcome = function_of(config.perform.name)(work, **config.perform.options())
    outcome.wall_seconds = time.perf_counter() - wall
    outcome.cpu_seconds = time.process_time() - cpu
    outcome.provenance = {**_facts(work), **outcome.provenance}
    if device.type == "cuda":
        outcome.peak_bytes = torch.cuda.max_memory_allocated(device)
    return outcome


def _facts(work: Work) -> dict[str, Any]:
    config, device = work.config, work.device
    purposes = ("init", "data", "order", "dropout", "positions", "evaluation")
    task = {} if config.task is None else {"generator": config.task.model_dump(mode="json")}
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "seeds": {purpose: work.seeds.seed(purpose) for purpose in purposes},  # type: ignore[arg-type]
        **task,
        "mask_convention": CONVENTION,
    }


def train_and_score(work: Work) -> Outcome:
    """Train and score one replicate of a config.

    A training that diverges is a result: status "diverged", with the reason and the scores of a
    model that learned nothing.
    """
    config, task = work.config, task_of(work.config.task)
    model = build_model(config, work.seeds)
    model = model.to(work.device, getattr(torch, config.training.dtype))
    outcome = Outcome(parameters=sum(one.numel() for one in model.parameters()), model=model)
    curves, callbacks = Curves(config.training.last_step), Callbacks(model, task, work)
    try:
        callbacks.before()
        steps = train(
            model,
            task,
            config.training,
            width_of(config),
            work.seeds,
            work.device,
            curves,
            work.after_step,
            callbacks.during,
        )
        callbacks.after(steps)
        outcome.scores = [*score(model, task, work), *callbacks.scores]
        outcome.provenance["steps"] = steps
    except DivergedError as error:
        outcome.status, outcome.reason, outcome.model = "diverged", str(error), None
        scores = of_nothing_learned(score(model, task, work))
        outcome.scores = [*scores, *callbacks.criterion.measured(None)]
    outcome.curves = curves.points + callbacks.points
    outcome.provenance |= {"optimizer": "AdamW", "schedule": config.training.schedule}
    return outcome


def score(model: nn.Module, task: Task, work: Work) -> list[Measured]:
    """Accuracy, exact match, skill and nll at trained lengths (validation) and at tested ones."""
    settings, found = work.config.evaluation, list[Measured]()
    trained = validation_lengths(*trained_lengths(task, work.config.training))
    for split, lengths in (("validation", trained), ("test", settings.test_lengths)):
        sets = FixedSets(task, split, work.seeds, settings.examples, settings.batch_size)
        found += evaluate(
            model, sets, lengths, work.device, work.between_batches, settings.position_draws
        )
    return found


KEPT = 16
"""So many trained models are kept by a worker: small ones, of the replicates of one panel."""


def trained_once(work: Work) -> Outcome:
    """The outcome of training and scoring the model of a run, with the model.

    A training follows from its config, replicate and device alone. So runs that differ only in
    what is done with the trained model, `perform`, may share it: the first of them in a worker
    trains. It is not to be changed.
    """
    config = work.config.model_copy(update={"perform": None})
    key = json.dumps(config.plain(), sort_keys=True), work.replicate, str(work.device)
    return _trained(_Training(key, replace(work, config=config)))


@dataclass(frozen=True)
class _Training:
    key: tuple[str, int, str]
    work: Work = field(compare=False)


@lru_cache(maxsize=KEPT)
def _trained(training: _Training) -> Outcome:
    return train_and_score(training.work)


def forget() -> None:
    """Let go of all models: the next run trains its own."""
    _trained.cache_clear()


def device_named(name: str) -> str:
    """The device that "cpu", "cuda" or "auto" names here; a ConfigError where it is missing."""
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise ConfigError([Problem("device", "torch sees no CUDA device here; take cpu or auto")])
    return "cuda" if there and name != "cpu" else "cpu"


def device_facts(device: str) -> dict[str, Any]:
    """What is known of torch and of the device."""
    facts: dict[str, Any] = {"version": torch.__version__, "device": device}
    if device == "cuda":
        facts |= {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    return facts


def out_of_memory(error: BaseException) -> bool:
    """Does an error say that there is not enough memory? On the CPU torch has no type for it."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "allocate memory" in str(error)
    )
