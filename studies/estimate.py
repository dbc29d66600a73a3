"""Roughly how long a run takes here, from a few steps of it."""

import time

import torch

from studies.evaluation import evaluate
from studies.models import build_model, width_of
from studies.seeds import Seeds
from studies.settings import RunConfig, task_of
from studies.training import Curves, train

STEPS = 12


def seconds_of(config: RunConfig) -> float:
    """Seconds of one run on one thread: a few training steps and a few examples, extrapolated.

    The first steps are not timed, since they are slower.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _steps(config) + _examples(config)
    finally:
        torch.set_num_threads(before)


def _steps(config: RunConfig) -> float:
    times: list[float] = []
    few = config.training.model_copy(update={"steps": STEPS})
    model = _model(config)
    train(
        model,
        task_of(config.task),
        few,
        width_of(config),
        Seeds(0, 0),
        torch.device("cpu"),
        Curves(STEPS),
        lambda: times.append(time.perf_counter()),
    )
    timed = times[STEPS // 3 :]
    return (timed[-1] - timed[0]) / (len(timed) - 1) * config.training.steps


def _examples(config: RunConfig) -> float:
    settings, device = config.evaluation, torch.device("cpu")
    few = min(settings.examples, settings.batch_size)
    start = time.perf_counter()
    evaluate(
        _model(config),
        task_of(config.task),
        settings.test_lengths,
        "test",
        Seeds(0, 0),
        few,
        settings.batch_size,
        device,
        position_draws=settings.position_draws,
    )
    return (time.perf_counter() - start) * settings.examples / few


def _model(config: RunConfig) -> torch.nn.Module:
    return build_model(config, Seeds(0, 0)).to(getattr(torch, config.training.dtype))
