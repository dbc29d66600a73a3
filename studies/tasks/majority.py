"""Majority: which of two symbols is more frequent? Every encoder should learn it."""

from typing import ClassVar

import torch
from einops import reduce
from jaxtyping import Int
from torch import Tensor

from studies.tasks._estimates import UNSCORED
from studies.tasks.task import Batch, Floors, Task, uniform_tokens, whole


class Majority(Task):
    """Say whether symbol 2 is more frequent than symbol 1: one answer, order does not matter.

        tokens   2 1 2    answer 1
        tokens   1 1 2    answer 0

    A positive control: one layer that averages solves it, with or without positions. Tokens are
    independent and uniform; where they tie, one token at a random place is turned into the other
    symbol. Swapping the symbols changes nothing in this law, so the answers are balanced at every
    length. `solve` leaves a tie unscored.
    """

    name: ClassVar[str] = "majority"
    readout: ClassVar[str] = "mean"
    difficulty: ClassVar[tuple[str, ...]] = ("length",)

    @property
    def vocab_size(self) -> int:
        return 3

    @property
    def n_classes(self) -> int:
        return 2

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        self.check_length(length)
        tokens = uniform_tokens(generator, batch, length, alphabet=2)
        place = torch.randint(length, (batch, 1), generator=generator)
        turned = tokens.scatter(1, place, 3 - tokens.gather(1, place))
        tie = reduce(2 * tokens - 3, "batch seq -> batch 1", "sum") == 0
        tokens = torch.where(tie, turned, tokens)
        return whole(tokens, self.solve(tokens))

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, " batch"]:
        lead = reduce(2 * tokens - 3, "batch seq -> batch", "sum")
        return (lead > 0).long().masked_fill(lead == 0, UNSCORED)

    def measure_floors(self, length: int) -> Floors:
        """The bag gives the answer away."""
        return Floors(constant=0.5, index=0.5, bag=1.0)
