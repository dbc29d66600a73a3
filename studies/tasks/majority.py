"""Majority: which of two symbols is more frequent? Every encoder should learn it."""

from typing import ClassVar

import torch
from einops import reduce
from jaxtyping import Int
from torch import Tensor

from studies.tasks._floors import UNSCORED
from studies.tasks._shapes import OneAnswer, Place
from studies.tasks.task import Floors, uniform_tokens


class Majority(OneAnswer):
    """Say whether symbol 2 is more frequent than symbol 1: one answer, order does not matter.

    >>> print(Majority().show([2, 1, 2]))
    tokens   2 1 2
    answer   1
    >>> print(Majority().show([1, 1, 2]))
    tokens   1 1 2
    answer   0

    A positive control: one layer that averages solves it, with or without positions. Tokens are
    independent and uniform; where they tie, one token at a random place is turned into the other
    symbol. Swapping the symbols changes nothing in this law, so the answers are balanced at every
    length. `solve` leaves a tie unscored.

    Raises:
        ValueError: If there is no such place to answer at.
    """

    name: ClassVar[str] = "majority"
    difficulty: ClassVar[tuple[str, ...]] = ("answer_at", "length")

    def __init__(self, answer_at: Place = "mean") -> None:
        super().__init__(answer_at)

    @property
    def n_symbols(self) -> int:
        return 2

    @property
    def n_classes(self) -> int:
        return 2

    def draw(
        self, generator: torch.Generator, batch: int, length: int
    ) -> tuple[Int[Tensor, "batch symbol"], Int[Tensor, " batch"]]:
        tokens = uniform_tokens(generator, batch, length, alphabet=2)
        place = torch.randint(length, (batch, 1), generator=generator)
        turned = tokens.scatter(1, place, 3 - tokens.gather(1, place))
        tie = reduce(2 * tokens - 3, "batch seq -> batch 1", "sum") == 0
        tokens = torch.where(tie, turned, tokens)
        return tokens, self.answer(tokens)

    def answer(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, " batch"]:
        lead = reduce(2 * symbols - 3, "batch symbol -> batch", "sum")
        return (lead > 0).long().masked_fill(lead == 0, UNSCORED)

    def measure_floors(self, length: int) -> Floors:
        """The bag gives the answer away."""
        return Floors(constant=0.5, index=0.5, bag=1.0)
