"""Numbers as strings of bits, as long as one likes."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def number_of(bits: Sequence[int]) -> int:
    """The number with these bits, highest first."""
    return int("".join(map(str, bits)), 2)


def to_bits(number: int, size: int) -> list[int]:
    """So many bits of a number, highest first."""
    return [int(bit) for bit in f"{number:0{size}b}"]


def uniform_nonzero(
    generator: torch.Generator, batch: int, length: int
) -> Int[Tensor, "batch symbol"]:
    """Bits of uniform numbers other than 0, as the tokens 1 (a zero) and 2 (a one)."""
    drawn = torch.ones(batch, length, dtype=torch.long)
    while (again := (drawn == 1).all(dim=1)).any():
        drawn[again] = torch.randint(1, 3, (int(again.sum()), length), generator=generator)
    return drawn


def two_numbers(
    generator: torch.Generator, batch: int, length: int, sign: int
) -> Int[Tensor, "batch symbol"]:
    """Bits of two numbers with a sign between, at a uniform place; neither number is 0."""
    split = torch.randint(1, length - 1, (batch, 1), generator=generator)
    drawn = torch.ones(batch, length, dtype=torch.long)
    while (again := _has_zero(drawn, split)).any():
        bits = torch.randint(1, 3, (int(again.sum()), length), generator=generator)
        drawn[again] = bits.scatter(1, split[again], sign)
    return drawn


def _has_zero(
    symbols: Int[Tensor, "batch symbol"], split: Int[Tensor, "batch 1"]
) -> Bool[Tensor, " batch"]:
    """Where one of the numbers is 0."""
    index = torch.arange(symbols.shape[1])
    first = ((symbols == 2) & (index < split)).any(dim=1)
    return ~(first & ((symbols == 2) & (index > split)).any(dim=1))
