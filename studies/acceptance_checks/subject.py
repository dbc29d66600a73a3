"""What acceptance looks at: a model that can be built anew, and a task to try it on."""

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from studies.scoring import logits_of
from studies.tasks.task import Batch, Task
from studies.training.models import build_model
from studies.training.outcome import Work
from studies.training.settings import task_of
from variants.encoder import Encoder


@dataclass(frozen=True)
class Subject:
    """The model of a run, and the sequences that it is tried on.

    Args:
        work: The run; its task, length and training settings are those of the checks.
        overfit_examples: How many sequences are learned by heart.
        overfit_steps: Within how many steps at most.
        overfit_rate: At which learning rate.
    """

    work: Work
    overfit_examples: int = 100
    overfit_steps: int = 400
    overfit_rate: float = 1e-3

    @cached_property
    def task(self) -> Task:
        """The task."""
        return task_of(self.work.config.task)

    @property
    def length(self) -> int:
        """The length of its sequences, in symbols."""
        return self.work.config.training.train_lengths[1]

    def build(self) -> nn.Module:
        """A fresh model, the same at every call, in training mode."""
        dtype = getattr(torch, self.work.config.training.dtype)
        return build_model(self.work.config, self.work.seeds).to(self.work.device, dtype).train()

    @cached_property
    def model(self) -> nn.Module:
        """The model in evaluation mode; it is not to be changed."""
        return self.build().eval()

    @property
    def encoder(self) -> Encoder | None:
        """The model, if it is an encoder of our parts."""
        return self.model if isinstance(self.model, Encoder) else None

    def changed(self) -> Any:
        """A copy of the model that may be changed."""
        return copy.deepcopy(self.model)

    def batch(self, number: int = 4, length: int | None = None) -> Batch:
        """Sequences, the same at every call."""
        length = self.length if length is None else length
        drawn = self.task.sample(self.work.seeds.generator("data", "look"), number, length)
        device = self.work.device
        return Batch(drawn.tokens.to(device), drawn.targets.to(device), drawn.keep.to(device))

    def logits(self, tokens: Tensor) -> Tensor:
        """The answers of the model in evaluation mode."""
        with torch.no_grad():
            return logits_of(self.model(tokens))
