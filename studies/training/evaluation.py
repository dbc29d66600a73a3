"""Evaluation: how well a model does at each length, on sets that are the same for every arm."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from studies.tasks.task import Batch, Task
from studies.training.outcome import Measured
from studies.training.seeds import Seeds
from variants.positions import BeyondTableError

UNSCORED = -100
PLACES_WITH_ANSWERS = 3
"""Axes of targets where a token has several answers: batch, seq, answers."""
VALIDATION_LENGTHS = 8
"""At most this many of the training lengths are used for validation, evenly spread."""


@dataclass
class _Totals:
    answers: int = 0
    correct: int = 0
    sequences: int = 0
    exact: int = 0
    nll: float = 0.0

    def add(self, logits: Tensor, targets: Tensor) -> None:
        logits = by_answer(logits, targets)
        scored, right = judged(logits, targets)
        flat = rearrange(logits, "... classes -> (...) classes").double()
        nll = F.cross_entropy(flat, targets.flatten(), ignore_index=UNSCORED, reduction="sum")
        rows = rearrange(scored, "batch ... -> batch (...)")
        whole = rearrange(right | ~scored, "batch ... -> batch (...)").all(dim=-1) & rows.any(
            dim=-1
        )
        self.answers += int(scored.sum())
        self.correct += int(right.sum())
        self.sequences += int(rows.any(dim=-1).sum())
        self.exact += int(whole.sum())
        self.nll += float(nll)


def judged(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Which targets are scored, and which of them the logits of each answer get right."""
    scored = targets != UNSCORED
    return scored, (logits.argmax(dim=-1) == targets) & scored


def by_answer(logits: Tensor, targets: Tensor) -> Tensor:
    """The logits of each target: those of a place with several answers are told apart.

    Raises:
        ValueError: If they are not as many as the targets; a model of the user's may answer
            elsewhere than its task asks.
    """
    told = logits
    if logits.ndim == targets.ndim == PLACES_WITH_ANSWERS:
        split = "batch seq (answers classes) -> batch seq answers classes"
        told = rearrange(logits, split, answers=targets.shape[-1])
    if told.shape[:-1] != targets.shape:
        asked = ", ".join(map(str, targets.shape))
        where = "a sequence" if targets.ndim == 1 else "a token"
        raise ValueError(
            f"this task has an answer for {where}, so a model gives logits of shape ({asked}, "
            f"classes) here; got {tuple(logits.shape)}"
        )
    return told


def validation_lengths(shortest: int, longest: int) -> list[int]:
    """Training lengths, evenly spread and the longest among them."""
    count = min(VALIDATION_LENGTHS, longest - shortest + 1)
    if count == 1:
        return [longest]
    return [shortest + round(i * (longest - shortest) / (count - 1)) for i in range(count)]


def evaluate(
    model: nn.Module,
    task: Task,
    lengths: Iterable[int],
    split: str,
    seeds: Seeds,
    examples: int,
    batch_size: int,
    device: torch.device,
    between_batches: Callable[[], None] = lambda: None,
    position_draws: int = 1,
    refused: dict[int, str] | None = None,
) -> list[Measured]:
    """Accuracy, exact match, skill and nll at each length.

    Accuracy is the share of right answers, exact match the share of sequences with all of them
    right; skill is (accuracy - floor) / (1 - floor) with the task's floor at that length, 0 for
    the best blind guess. A length that the model refuses, such as one beyond a learned table, is
    measured as None with n = 0, and `refused` is told why.

    A model that draws positions at random does so for each batch, from a stream of the replicate,
    the split and the length; predicted probabilities are averaged over `position_draws` draws.
    """
    model.eval()
    random = bool(getattr(model, "draws", False))
    measured: list[Measured] = []
    for length in lengths:
        totals = _Totals()
        seed = seeds.seed("positions", split, length)
        positions = torch.Generator(device).manual_seed(seed) if random else None
        try:
            for batch in fixed_set(task, split, length, seeds, examples, batch_size):
                targets = batch.targets.to(device)
                drawn = [
                    by_answer(predict(model, batch, device, positions), targets)
                    for _ in range(position_draws if random else 1)
                ]
                totals.add(averaged(drawn), targets)
                between_batches()
        except BeyondTableError as error:
            totals = _Totals()
            if refused is not None:
                refused[length] = str(error)
        measured += _measures(totals, task, split, length)
    return measured


def fixed_set(
    task: Task, split: str, length: int, seeds: Seeds, examples: int, batch_size: int
) -> Iterator[Batch]:
    """A fixed set of examples: a function of the replicate, the split and the length."""
    generator = seeds.generator("evaluation", split, length)
    drawn = task.sample(generator, examples, length)
    for start in range(0, examples, batch_size):
        rows = slice(start, start + batch_size)
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
    """The logits in what a model returned: a tensor, or an object that holds them.

    Raises:
        TypeError: If it is neither.
    """
    if isinstance(output, Tensor):
        return output
    logits = getattr(output, "logits", None)
    if not isinstance(logits, Tensor):
        raise TypeError(
            f"a model returns logits, or an object with .logits; got {type(output).__name__}"
        )
    return logits


def _measures(totals: _Totals, task: Task, split: str, length: int) -> list[Measured]:
    answers, sequences = totals.answers, totals.sequences
    accuracy = totals.correct / answers if answers else None
    exact = totals.exact / sequences if sequences else None
    nll = totals.nll / answers if answers else None
    skill = None if accuracy is None else skill_of(accuracy, task.floors(length).highest)
    return [
        Measured(split, length, "accuracy", answers, accuracy, totals.correct if answers else None),
        Measured(split, length, "exact", sequences, exact, totals.exact if sequences else None),
        Measured(split, length, "skill", answers, skill),
        Measured(split, length, "nll", answers, nll),
    ]


def skill_of(accuracy: float, floor: float) -> float:
    """(accuracy - floor) / (1 - floor): 0 for the best blind guess, 1 for a perfect answer."""
    return (accuracy - floor) / (1 - floor)
