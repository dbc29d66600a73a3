"""Evaluation: how well a model does at each length, on sets that are the same for every arm."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from studies.scoring import (
    Measured,
    averaged,
    fixed_set,
    judged,
    logits_per_answer,
    predict,
)
from studies.seeds import Seeds
from studies.tasks.task import UNSCORED, Task
from variants.positions import BeyondTableError

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
        logits = logits_per_answer(logits, targets)
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
                    logits_per_answer(predict(model, batch, device, positions), targets)
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
