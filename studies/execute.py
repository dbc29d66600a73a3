"""Do one run: build, train, evaluate."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from registry.builder import build_encoder
from studies.evaluation import Measured, evaluate, validation_lengths
from studies.seeds import Seeds
from studies.settings import RunConfig, task_of
from studies.tasks.task import Task
from studies.training import Curves, DivergedError, Point, train
from variants.encoder import Encoder
from variants.masks import CONVENTION


@dataclass
class Outcome:
    """What came of a run. Times are seconds; `peak_bytes` is GPU memory, None on the CPU."""

    status: str = "done"
    reason: str | None = None
    scores: list[Measured] = field(default_factory=list[Measured])
    curves: list[Point] = field(default_factory=list[Point])
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int | None = None
    parameters: int | None = None
    provenance: dict[str, Any] = field(default_factory=dict[str, Any])


def execute(
    config: RunConfig,
    replicate: int,
    device: torch.device,
    after_step: Callable[[], None] = lambda: None,
    between_batches: Callable[[], None] = lambda: None,
) -> Outcome:
    """Train and evaluate one replicate of a config.

    The numbers depend on the config, the replicate, the machine and its thread count alone. A
    training that diverges is a result: status "diverged", with the reason and no scores.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    seeds, task = Seeds(config.study.seed, replicate), task_of(config.task)
    model = build_encoder(config.encoder, seed=seeds.seed("init"))
    model = model.to(device, getattr(torch, config.training.dtype))
    outcome = Outcome(parameters=sum(one.numel() for one in model.parameters()))
    curves = Curves(config.training.steps)
    try:
        width = config.encoder.d_model
        train(model, task, config.training, width, seeds, device, curves, after_step)
        outcome.scores = _evaluate(model, task, config, seeds, device, between_batches)
    except DivergedError as error:
        outcome.status, outcome.reason = "diverged", str(error)
    outcome.curves = curves.points
    outcome.wall_seconds = time.perf_counter() - wall
    outcome.cpu_seconds = time.process_time() - cpu
    outcome.provenance = _facts(config, seeds, device)
    if device.type == "cuda":
        outcome.peak_bytes = torch.cuda.max_memory_allocated(device)
    return outcome


def _evaluate(
    model: Encoder,
    task: Task,
    config: RunConfig,
    seeds: Seeds,
    device: torch.device,
    between_batches: Callable[[], None],
) -> list[Measured]:
    shortest, longest = config.training.train_lengths
    trained = validation_lengths(max(shortest, task.min_length), longest)
    splits = {"validation": trained, "test": list(config.evaluation.test_lengths)}
    settings = config.evaluation
    return [
        measured
        for split, lengths in splits.items()
        for measured in evaluate(
            model,
            task,
            lengths,
            split,
            seeds,
            settings.examples,
            settings.batch_size,
            device,
            between_batches,
        )
    ]


def _facts(config: RunConfig, seeds: Seeds, device: torch.device) -> dict[str, Any]:
    purposes = ("init", "data", "order", "dropout", "positions", "evaluation")
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "seeds": {purpose: seeds.seed(purpose) for purpose in purposes},  # type: ignore[arg-type]
        "generator": config.task.model_dump(mode="json"),
        "optimizer": "AdamW",
        "schedule": config.training.schedule,
        "steps": config.training.steps,
        "mask_convention": CONVENTION,
    }
