"""The contract of a probe: what it measures, and when it is asked."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from studies.scoring import FixedSets, Measured, judged, logits_per_answer, predict
from studies.seeds import Seeds
from studies.tasks.task import Batch, Task, with_options
from variants.positions import BeyondTableError

LAYER = re.compile(r"(?:^|\.)blocks\.(\d+)\b")
"""The layer in the path of a module or parameter."""


@dataclass(frozen=True)
class ProbeContext:
    """What a probe sees: a model in evaluation mode, its task, and a run's config and streams.

    `config` is the run's `studies.training.settings.RunConfig`.
    """

    model: nn.Module
    task: Task
    config: Any
    seeds: Seeds
    device: torch.device

    @property
    def longest_trained(self) -> int:
        """The longest trained length."""
        return self.config.training.train_lengths[1]

    @property
    def test_lengths(self) -> tuple[int, ...]:
        """The tested lengths."""
        return self.config.evaluation.test_lengths

    def batch(self, examples: int, length: int | None = None) -> Batch:
        """Sequences to look at, the same at every call and for every arm of a replicate.

        They have the longest trained length, unless another one is given.
        """
        length = self.longest_trained if length is None else length
        generator = self.seeds.generator("evaluation", "probe", length)
        drawn = self.task.sample(generator, examples, length)
        return Batch(
            drawn.tokens.to(self.device), drawn.targets.to(self.device), drawn.keep.to(self.device)
        )

    def measured(self, metric: str, n: int, value: float, bin: int | None) -> Measured:
        """A number of a batch of the longest trained length."""
        return Measured("validation", self.longest_trained, metric, n, value, bin=bin)

    def answered(self, length: int) -> Iterator[tuple[Batch, Tensor, Tensor]]:
        """The test set of a length, batch by batch, with which answers are scored and right."""
        evaluation = self.config.evaluation
        sizes = evaluation.examples, evaluation.batch_size
        for batch in FixedSets(self.task, "test", self.seeds, *sizes).batches(length):
            targets = batch.targets.to(self.device)
            logits = logits_per_answer(predict(self.model, batch, self.device), targets)
            yield batch, *judged(logits, targets)


Scene = ProbeContext
"""The name of earlier releases, under which the probes of users may import it."""


class Probe(ABC):
    """Looks into a model, and changes nothing.

    It is asked before the first step, after each of `steps`, and after the last one. What it
    measures before and during training becomes points of curves, `metric[bin]@length` by step;
    what it measures at the end becomes scores as well. The constructor takes the probe's own
    options, with defaults and annotations; a config accepts exactly these. `examples` is the size
    of the batch that is looked at. Most probes measure the same at each of these moments: they
    define `measure` alone.

    `metrics` names what it measures, without bins, so that a slip in a hypothesis is seen before
    any training; None: that is not told beforehand.

    A model that a probe cannot look into is refused by a ValueError that says what is missing.
    """

    name: ClassVar[str]
    metrics: ClassVar[tuple[str, ...] | None] = None

    def __init__(self, steps: tuple[int, ...] = ()) -> None:
        self.steps = steps

    @abstractmethod
    def measure(self, context: ProbeContext) -> Iterable[Measured]:
        """What the model at hand shows."""

    def before(self, context: ProbeContext) -> Iterable[Measured]:
        """What is measured before the first step."""
        return self.measure(context)

    def during(self, context: ProbeContext, step: int) -> Iterable[Measured]:
        """What is measured after one of `steps`."""
        return self.measure(context)

    def after(self, context: ProbeContext) -> Iterable[Measured]:
        """What is measured after the last step."""
        return self.measure(context)

    def __repr__(self) -> str:
        return with_options(self)


def blocks_of(model: nn.Module, name: str) -> nn.ModuleList:
    """The layers of a model; a ValueError where it has no `blocks`."""
    blocks = getattr(model, "blocks", None)
    if not isinstance(blocks, nn.ModuleList):
        raise ValueError(
            f"{name} looks at the blocks of a model, in a ModuleList called blocks; "
            f"{type(model).__name__} has none; leave it out of evaluation.probes"
        )
    return blocks


class ScoresByBin(Probe):
    """Accuracy at every tested length, apart for each bin that an answer may be in.

    A length that the model refuses has no bins. Before the first step nothing is measured. The
    only one of `metrics` names it.
    """

    metrics: ClassVar[tuple[str]]

    @abstractmethod
    def bins(self, context: ProbeContext, batch: Batch, scored: Tensor) -> Tensor:
        """The bin of each answer of a batch, in the shape of `scored`."""

    def before(self, context: ProbeContext) -> Iterable[Measured]:
        return ()

    def measure(self, context: ProbeContext) -> Iterator[Measured]:
        for length in context.test_lengths:
            asked, known = Counter[int](), Counter[int]()
            try:
                for batch, scored, right in context.answered(length):
                    bins = self.bins(context, batch, scored)
                    asked.update(bins[scored].tolist())
                    known.update(bins[right].tolist())
            except BeyondTableError:
                continue
            for at, n in sorted(asked.items()):
                share = known[at] / n
                yield Measured("test", length, self.metrics[0], n, share, known[at], bin=at)
