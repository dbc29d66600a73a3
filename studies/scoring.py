"""From the answers of a model to numbers: its logits, which of them are right, what they cost."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from studies.seeds import Seeds
from studies.tasks.task import UNSCORED, Batch, Task
from variants.encoder import Encoder


@dataclass(frozen=True)
class Measured:
    """One number: `n` counts what it is a mean over, such as scored answers; nll is in nats.

    `bin` tells apart what is measured several times, such as layers or output indices. `imputed`
    is True for a run that diverged: then it is the score of a model that learned nothing.
    """

    split: str
    length: int
    metric: str
    n: int
    value: float | None
    correct: int | None = None
    bin: int | None = None
    imputed: bool = False


@dataclass(frozen=True)
class Point:
    """A point of a curve over training: what a metric is at a step, or its mean up to there."""

    step: int
    metric: str
    value: float


@dataclass(frozen=True)
class FixedSets:
    """Sets of examples, one a length, that are the same for every arm of a replicate.

    `split` is the stream that they are drawn from: test, validation …; there are `examples` of each
    length, of which a model sees `batch_size` at a time.
    """

    task: Task
    split: str
    seeds: Seeds
    examples: int
    batch_size: int

    def batches(self, length: int) -> Iterator[Batch]:
        """The set of a length, batch by batch."""
        generator = self.seeds.generator("evaluation", self.split, length)
        drawn = self.task.sample(generator, self.examples, length)
        for start in range(0, self.examples, self.batch_size):
            rows = slice(start, start + self.batch_size)
            yield Batch(drawn.tokens[rows], drawn.targets[rows], drawn.keep[rows])


@torch.no_grad()
def predict(
    model: nn.Module,
    batch: Batch,
    device: torch.device,
    positions: torch.Generator | None = None,
) -> Tensor:
    """The logits of a batch; `positions` is where a model that draws positions draws from."""
    tokens = batch.tokens.to(device)
    return logits_of(model(tokens) if positions is None else model(tokens, generator=positions))


def averaged(logits: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean of predicted probabilities; one prediction stays as it is."""
    if len(logits) == 1:
        return logits[0]
    chances = torch.stack([one.double().log_softmax(dim=-1) for one in logits])
    return chances.logsumexp(dim=0) - math.log(len(logits))


def logits_of(output: Any) -> Tensor:
    """The logits in what a model returned: a tensor, or an object that holds them."""
    if isinstance(output, Tensor):
        return output
    logits = getattr(output, "logits", None)
    if not isinstance(logits, Tensor):
        raise TypeError(
            f"a model returns logits, or an object with .logits; got {type(output).__name__}"
        )
    return logits


def logits_per_answer(logits: Tensor, targets: Tensor) -> Tensor:
    """The logits of each target: those of a place with several answers are told apart.

    A ValueError says that a model of the user's answers elsewhere than its task asks.
    """
    if logits.ndim == targets.ndim == 3:  # targets of batch, seq, answers
        split = "batch seq (answers classes) -> batch seq answers classes"
        logits = rearrange(logits, split, answers=targets.shape[-1])
    if logits.shape[:-1] != targets.shape:
        asked = ", ".join(map(str, targets.shape))
        where = "a sequence" if targets.ndim == 1 else "a token"
        raise ValueError(
            f"this task has an answer for {where}, so a model gives logits of shape ({asked}, "
            f"classes) here; got {tuple(logits.shape)}"
        )
    return logits


def judged(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Which targets are scored, and which of them the logits of each answer get right."""
    scored = targets != UNSCORED
    return scored, (logits.argmax(dim=-1) == targets) & scored


@contextmanager
def hooked(modules: Iterable[nn.Module], hook: Callable[..., None]) -> Iterator[None]:
    """Call a hook after each forward of some modules."""
    handles = [module.register_forward_hook(hook) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def batch_loss(
    model: nn.Module, batch: Batch, device: torch.device, positions: torch.Generator | None = None
) -> Tensor:
    """Cross-entropy, averaged over the scored answers; 0 where nothing is scored."""
    # Only our own encoder draws positions; any other module is called with its tokens alone.
    given = {"generator": positions} if isinstance(model, Encoder) else {}
    logits = logits_of(model(batch.tokens.to(device), **given))
    return mean_loss(logits, batch.targets.to(device))


def mean_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy in nats, averaged over the targets that are not -100."""
    flat = rearrange(logits_per_answer(logits, targets), "... classes -> (...) classes")
    flat = flat.to(torch.promote_types(flat.dtype, torch.float32))
    total = F.cross_entropy(flat, targets.flatten(), ignore_index=UNSCORED, reduction="sum")
    return total / (targets != UNSCORED).sum().clamp(min=1)
