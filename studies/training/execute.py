"""Do one run: by the function that its config names, else by training and scoring."""

import time
from collections.abc import Callable
from typing import Any

import torch

from studies.training import references
from studies.training.outcome import Outcome, Work
from studies.training.settings import RunConfig
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
    outcome = _perform(work)
    outcome.wall_seconds = time.perf_counter() - wall
    outcome.cpu_seconds = time.process_time() - cpu
    outcome.provenance = {**_facts(work), **outcome.provenance}
    if device.type == "cuda":
        outcome.peak_bytes = torch.cuda.max_memory_allocated(device)
    return outcome


def _perform(work: Work) -> Outcome:
    chosen = work.config.perform
    if chosen is None:
        from studies.training.train_and_score import perform

        return perform(work)
    return references.function_of(chosen.name)(work, **chosen.options())


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
