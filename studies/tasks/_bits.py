"""Numbers as strings of bits, as long as one likes."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from studies.tasks._shapes import AnswerString
from studies.tasks.task import Symbols

SIGN = 3
"""The token between two numbers; tokens 1 and 2 are the bits 0 and 1."""


class TwoNumbers(AnswerString):
    """A task about two numbers with a sign between, at a uniform place; neither is 0."""

    n_symbols, n_classes, min_length = 3, 3, 3

    def draw(self, generator: Generator, batch: int, length: int) -> Symbols:
        split = torch.randint(1, length - 1, (batch, 1), generator=generator)
        drawn = torch.ones(batch, length, dtype=torch.long)
        while (again := _has_zero(drawn, split)).any():
            bits = torch.randint(1, 3, (int(again.sum()), length), generator=generator)
            drawn[again] = bits.scatter(1, split[again], SIGN)
        return drawn


def _has_zero(symbols: Symbols, split: Int[Tensor, "batch 1"]) -> Bool[Tensor, " batch"]:
    """Where one of the numbers is 0."""
    index = torch.arange(symbols.shape[1])
    first = ((symbols == 2) & (index < split)).any(dim=1)
    return ~(first & ((symbols == 2) & (index > split)).any(dim=1))


def number_of(bits: Sequence[int]) -> int:
    """The number with these bits, highest first."""
    return int("".join(map(str, bits)), 2)


def to_bits(number: int, size: int) -> list[int]:
    """So many bits of a number, highest first."""
    return [int(bit) for bit in f"{number:0{size}b}"]
