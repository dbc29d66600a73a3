"""Parity: is a count odd? No encoder should learn it within a usual budget."""

from typing import ClassVar

import torch
from einops import reduce
from jaxtyping import Int
from torch import Tensor

from studies.tasks.task import Batch, Floors, Task, uniform_tokens, whole


class Parity(Task):
    """Say whether the number of 2s is odd: one answer, and every token can change it.

        tokens   2 1 2 2    answer 1
        tokens   2 1 2 1    answer 0

    A leak check: an encoder that scores above 1/2 on long sequences has seen the answers. Tokens
    are independent and uniform on two symbols, so the answers are balanced at every length.
    """

    name: ClassVar[str] = "parity"
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
        return whole(tokens, self.solve(tokens))

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, " batch"]:
        return reduce((tokens == 2).long(), "batch seq -> batch", "sum") % 2

    def measure_floors(self, length: int) -> Floors:
        """The bag gives the answer away."""
        return Floors(constant=0.5, index=0.5, bag=1.0)
