"""Roughly how long the runs of a plan take here, from a few steps of each kind of model."""

import time
from contextlib import suppress
from typing import Any

import torch

from registry.build import threads
from studies.design.costs import tokens_of
from studies.errors import BrokenModelError, model_answers, model_is_built
from studies.scoring import batch_loss, predict
from studies.seeds import Seeds
from studies.training.data import trained_lengths
from studies.training.models import build_model
from studies.training.settings import RunConfig, task_of
from variants.positions import BeyondTableError

STEPS = 4
"""So many steps are timed after one that is not, since the first is slower."""
ROWS = 8
"""So many sequences are scored to time the scoring."""


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
    """What decides how fast a model is; how many symbols there are hardly does."""
    sizes = ("vocab_size", "n_classes")
    given = {} if config.encoder is None else dict(config.encoder)
    encoder = {key: value for key, value in given.items() if key not in sizes}
    training = config.training
    lengths = (training.train_lengths, max(config.evaluation.test_lengths))
    return [encoder, config.model, training.batch_size, training.dtype, lengths, _seq(config)]


def _seq(config: RunConfig) -> int:
    return task_of(config.task).seq(config.training.train_lengths[1])


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
    """Of gradients at the mean length; an optimizer, whose step is cheap, is slow to import."""
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
