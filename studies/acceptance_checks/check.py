"""A check of a model: what it asks, which model it looks at, and what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn

from registry.conformance.checks import Broken, NotApplicable
from studies.scoring import logits_of
from studies.tasks.task import Batch, Task
from studies.training.models import build_model
from studies.training.outcome import Work
from studies.training.settings import task_of
from variants.encoder import Encoder

Status = Literal["passed", "failed", "not applicable"]


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
    def encoder(self) -> Encoder:
        """The model, as an encoder of our parts.

        Raises:
            NotApplicable: If it is another module.
        """
        if not isinstance(self.model, Encoder):
            raise NotApplicable("it is not made of our parts, so its inside is not known")
        return self.model

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


@dataclass(frozen=True)
class Passed:
    """The result of a check that passes, in words, with numbers that are stored beside it."""

    detail: str
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Finding:
    """What came of a check."""

    layer: str
    check: str
    status: Status
    detail: str
    suspects: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])

    def plain(self) -> dict[str, Any]:
        """The finding as it is stored."""
        return {**asdict(self), "suspects": list(self.suspects)}


@dataclass(frozen=True)
class Check:
    """One check.

    Args:
        layer: Where it belongs.
        ask: Returns what it found, or raises `Broken` or `NotApplicable`. Its name is the sentence
            that is checked.
        suspects: What is most often wrong where it fails, in plain words, the likeliest first.
    """

    layer: str
    ask: Callable[[Subject], Passed]
    suspects: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name under which its result is stored."""
        return self.ask.__name__

    def try_on(self, subject: Subject) -> Finding:
        """Check a model; one that breaks down on the way has failed."""
        try:
            found = self.ask(subject)
        except NotApplicable as reason:
            return Finding(self.layer, self.name, "not applicable", str(reason))
        except Exception as error:  # whatever a model raises is the answer to what was asked of it
            kind = "" if isinstance(error, Broken) else f"{type(error).__name__}: "
            detail = f"{kind}{error}"
            return Finding(self.layer, self.name, "failed", detail, self.suspects)
        return Finding(self.layer, self.name, "passed", found.detail, numbers=found.numbers)


class Layer:
    """The checks of one layer, in the order in which they are defined."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Check] = []

    def check(self, *suspects: str) -> Callable[[Callable[[Subject], Passed]], Any]:
        """Make the function below a check, with what to suspect first where it fails."""

        def add(ask: Callable[[Subject], Passed]) -> Callable[[Subject], Passed]:
            self.checks.append(Check(self.name, ask, suspects))
            return ask

        return add


def weights_of(encoder: Any, tokens: Tensor, mask: Any = None) -> Any:
    """The attention weights of each layer.

    Raises:
        NotApplicable: If the attention has none to show.
    """
    with torch.no_grad():
        try:
            return encoder(tokens, mask=mask, need_weights=True).weights
        except NotImplementedError as reason:
            raise NotApplicable(str(reason)) from None
