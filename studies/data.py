"""Training data: the batch of each step follows from the replicate and the step alone."""

from collections.abc import Iterator
from itertools import islice

import torch

from studies.seeds import Seeds
from studies.settings import Training
from studies.tasks.task import Batch, Task


def batches(task: Task, config: Training, seeds: Seeds) -> Iterator[Batch]:
    """A batch for each step that a training may have, each of sequences of one length.

    Fresh sequences at every step; or, where `examples` is a number, batches of that many sequences
    that are drawn once.
    """
    if config.examples == "infinite":
        endless = _fresh(task, config, seeds)
    else:
        endless = _fixed(task, config, config.examples, seeds)
    return islice(endless, config.last_step)


def trained_lengths(task: Task, config: Training) -> tuple[int, int]:
    """The shortest and the longest length that is trained on and has answers."""
    shortest, longest = config.train_lengths
    return max(shortest, task.min_length), longest


def _fresh(task: Task, config: Training, seeds: Seeds) -> Iterator[Batch]:
    low, high = trained_lengths(task, config)
    order, step = seeds.generator("order"), 0
    while True:
        for length in torch.randint(
            low, high + 1, (max(config.steps, 1),), generator=order
        ).tolist():
            step += 1
            yield task.sample(seeds.generator("data", "train", step), config.batch_size, length)


def _fixed(task: Task, config: Training, examples: int, seeds: Seeds) -> Iterator[Batch]:
    """Batches from `examples` sequences whose lengths are uniform on the trained ones.

    A step draws one of the sequences, then as many of its length as there are, up to a batch: so
    each sequence is seen equally often, in the long run.
    """
    low, high = trained_lengths(task, config)
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
