"""Duplicate: the sequence, twice over."""

from typing import ClassVar

import torch
from einops import repeat
from jaxtyping import Int
from torch import Tensor

from studies.tasks._shapes import UniformString


class Duplicate(UniformString):
    """Give the sequence several times over, at empty tokens behind it.

    >>> print(Duplicate().show([2, 1, 2]))
    tokens   2 1 2 _ _ _ _ _ _
    targets  . . . 1 0 1 1 0 1

    Answer j is symbol j mod T of T; symbol 2 is class 1. Symbols are independent and uniform on
    the alphabet.

    Source: Delétang et al. 2022, duplicate string (arXiv:2207.02098): two symbols, twice.

    Raises:
        ValueError: If the alphabet is below 2 or `times` below 1.
    """

    name: ClassVar[str] = "duplicate"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "times", "length")

    def __init__(self, alphabet: int = 2, times: int = 2) -> None:
        super().__init__(alphabet)
        if times < 1:
            raise ValueError(
                f"duplicate gives the sequence again, so times must be at least 1; "
                f"got times={times}; ask for 2, say"
            )
        self.times = times

    def outputs(self, length: int) -> int:
        return self.times * length

    def answer(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch output"]:
        return repeat(symbols - 1, "batch symbol -> batch (times symbol)", times=self.times)

    def copied(self, length: int) -> Int[Tensor, " output"]:
        return torch.arange(self.times * length) % length
