"""Training data: the batch of each step follows from the replicate and the step alone."""

from collections.abc import Iterator, Sequence
from itertools import islice

import torch
import torch.nn.functional as F
from torch import Tensor

from studies.seeds import Seeds
from studies.tasks.task import UNSCORED, Batch, Task
from studies.training.settings import Training


def batches(task: Task, config: Training, seeds: Seeds) -> Iterator[Batch]:
    """A batch for each step that a training may have, of one length or of `lengths_per_batch`.

    Fresh sequences at every step; or, where `examples` is a number, batches of that many sequences
    that are drawn once.
    """
    fresh = config.examples == "infinite"
    endless = _fresh(task, config, seeds) if fresh else _fixed(task, config, seeds)
    return islice(endless, config.last_step)


def trained_lengths(task: Task, config: Training) -> tuple[int, int]:
    """The shortest and the longest length that is trained on and has answers."""
    shortest, longest = config.train_lengths
    return max(shortest, task.min_length), longest


def _fresh(task: Task, config: Training, seeds: Seeds) -> Iterator[Batch]:
    low, high = trained_lengths(task, config)
    order, step, several = seeds.generator("order"), 0, config.lengths_per_batch
    size = config.batch_size // several
    while True:
        drawn = torch.randint(low, high + 1, (max(config.steps, 1), several), generator=order)
        for lengths in drawn.tolist():
            step += 1
            generator = seeds.generator("data", "train", step)
            yield padded([task.sample(generator, size, length) for length in lengths])


def padded(parts: Sequence[Batch]) -> Batch:
    """One batch of several, padded at the end to the longest."""
    if len(parts) == 1:
        return parts[0]
    longest = max(part.tokens.shape[1] for part in parts)
    tokens, targets, keep = (
        torch.cat([_longer(getattr(part, name), longest, value) for part in parts])
        for name, value in (("tokens", 0), ("targets", UNSCORED), ("keep", 0))
    )
    return Batch(tokens, targets, keep)


def _longer(part: Tensor, longest: int, value: int) -> Tensor:
    """A tensor whose second axis, if it has one, is filled up at its end."""
    if part.ndim == 1:
        return part
    missing = longest - part.shape[1]
    return F.pad(part, (*(0, 0) * (part.ndim - 2), 0, missing), value=value)


def _fixed(task: Task, config: Training, seeds: Seeds) -> Iterator[Batch]:
    """Batches from `examples` sequences whose lengths are uniform on the trained ones.

    A step draws one of the sequences, then as many of its length as there are, up to a batch: so
    each sequence is seen equally often, in the long run.
    """
    low, high = trained_lengths(task, config)
    examples = int(config.examples)
    drawn = torch.randint(low, high + 1, (examples,), generator=seeds.generator("data", "lengths"))
    counts = torch.bincount(drawn).tolist()
    pools = {
        length: task.sample(seeds.generator("data", "pool", length), count, length)
        for length, count in enumerate(counts)
        if count
    }
    order = seeds.generator("order")
    while True:
        length = int(drawn[torch.randint(examples, (), generator=order)])
        pool, size = pools[length], counts[length]
        rows = torch.randperm(size, generator=order)[: config.batch_size]
        yield Batch(pool.tokens[rows], pool.targets[rows], pool.keep[rows])
