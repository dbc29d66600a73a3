"""Floors of a task that is known only through samples: count, choose, score elsewhere."""

from collections.abc import Callable

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor

UNSCORED = -100
REARRANGEMENTS = 32


def score_of_choice(
    chosen_on: Int[Tensor, "group answers"], scored_on: Int[Tensor, "group others"], n_classes: int
) -> float:
    """The accuracy on some answers of each group's commonest class among other answers of it."""
    best = tally(chosen_on, n_classes).argmax(dim=1, keepdim=True)
    counts = tally(scored_on, n_classes)
    return (counts.gather(1, best).sum() / counts.sum().clamp(min=1)).item()


def tally(targets: Int[Tensor, "group answers"], n_classes: int) -> Int[Tensor, "group classes"]:
    """How often each class is the answer in each group; unscored answers do not count."""
    groups, answers = targets.shape
    group = repeat(torch.arange(groups), "group -> group answers", answers=answers)
    cells = (group * n_classes + targets)[targets != UNSCORED]
    counts = torch.bincount(cells, minlength=groups * n_classes)
    return rearrange(counts, "(group classes) -> group classes", group=groups)


def all_together(targets: Int[Tensor, "batch ..."]) -> Int[Tensor, "1 answers"]:
    """One group of all answers."""
    return rearrange(targets, "batch ... -> 1 (batch ...)")


def by_output(targets: Int[Tensor, "batch ..."]) -> Int[Tensor, "output answers"]:
    """One group an output index."""
    return rearrange(targets, "batch ... -> (...) batch")


def answers_of_rearrangements(
    solve: Callable[[Int[Tensor, "batch seq"]], Int[Tensor, "batch ..."]],
    tokens: Int[Tensor, "bag seq"],
    keep: Bool[Tensor, "bag seq"],
    generator: torch.Generator,
) -> tuple[Int[Tensor, "bag answers"], Int[Tensor, "bag answers"]]:
    """One group a bag, twice: the answers to two sets of random orders of the bag's tokens."""
    many = repeat(tokens, "bag seq -> (bag order) seq", order=REARRANGEMENTS)
    real = repeat(keep, "bag seq -> (bag order) seq", order=REARRANGEMENTS)
    noise: Float[Tensor, "many seq"] = torch.rand(many.shape, generator=generator)
    # Padding keeps to the right end.
    order = noise.masked_fill(~real, 2.0).argsort(dim=1)
    answers = solve(many.gather(1, order))
    first, second = rearrange(
        answers, "(bag two half) ... -> two bag (half ...)", two=2, half=REARRANGEMENTS // 2
    )
    return first, second


def score_of_bags(
    tokens: Int[Tensor, "batch seq"], targets: Int[Tensor, "batch ..."], n_classes: int
) -> float:
    """The accuracy of a choice for each bag of tokens, made on half of the sequences.

    For tasks that prefer some orders of a bag; it needs many sequences of the same bag.
    """
    counts = torch.zeros(len(tokens), int(tokens.max()) + 1, dtype=torch.long)
    bags, bag = counts.scatter_add(1, tokens, torch.ones_like(tokens)).unique(
        dim=0, return_inverse=True
    )
    labels = rearrange(targets, "batch ... -> batch (...)")
    cells = rearrange(bag * n_classes, "batch -> batch 1") + labels
    chosen_on, scored_on = (
        rearrange(
            torch.bincount(
                cells[half::2][labels[half::2] != UNSCORED], minlength=len(bags) * n_classes
            ),
            "(bag classes) -> bag classes",
            bag=len(bags),
        )
        for half in (0, 1)
    )
    best = chosen_on.argmax(dim=1, keepdim=True)
    return scored_on.gather(1, best).sum().item() / max(scored_on.sum().item(), 1)
