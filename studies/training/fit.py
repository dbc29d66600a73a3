"""The criterion of fit: is a model good enough at the lengths it is trained on, and since when?"""

import math
from dataclasses import dataclass, field

import torch
from torch import nn

from studies.tasks.task import Task
from studies.training.data import trained_lengths
from studies.training.evaluation import evaluate, validation_lengths
from studies.training.outcome import Measured, Point
from studies.training.seeds import Seeds
from studies.training.settings import Training

LOOKS = 50
"""About so often the criterion is looked at over `training.steps`, unless told otherwise."""


@dataclass
class Fit:
    """Watches whether a training meets the criterion `training.until`.

    The mean of its metric over trained lengths is looked at on sequences of their own. `step` is
    the first look at which it was met; `points` are all looks.
    """

    task: Task
    training: Training
    seeds: Seeds
    device: torch.device
    step: int | None = None
    points: list[Point] = field(default_factory=list[Point])

    def due(self, step: int) -> bool:
        """Is it looked at after this step?"""
        until = self.training.until
        if until is None or self.step is not None:
            return False
        every = until.every or max(1, self.training.steps // LOOKS)
        return step % every == 0 or step == self.training.last_step

    def look(self, model: nn.Module, step: int) -> bool:
        """Look; is the criterion met, and training to end here?"""
        until = self.training.until
        assert until is not None
        measured = evaluate(
            model,
            self.task,
            validation_lengths(*trained_lengths(self.task, self.training)),
            "fit",
            self.seeds,
            until.examples,
            until.examples,
            self.device,
        )
        found = [one.value for one in measured if one.metric == until.metric]
        value = math.fsum(one or 0.0 for one in found) / len(found)
        self.points.append(Point(step, f"fit.{until.metric}", value))
        if value >= until.value:
            self.step = step
        return until.stop and self.step is not None

    def measured(self, ended: int) -> list[Measured]:
        """Steps to fit, a censored time: `correct` is 1 where it was met, else 0 at the end."""
        if self.training.until is None:
            return []
        met, longest = self.step is not None, self.training.train_lengths[1]
        step = float(ended if self.step is None else self.step)
        return [Measured("train", longest, "steps_to_fit", 1, step, correct=int(met))]
