"""Reverse: the sequence from its end."""

from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from studies.tasks._shapes import StringPlace, UniformString


class Reverse(UniformString):
    """Give the sequence backwards: the distance differs at each position.

    >>> print(Reverse().show([3, 1, 4, 2]))
    tokens   3 1 4 2
    targets  1 3 0 2
    >>> print(Reverse(alphabet=2, answer_at="appended").show([1, 2, 2]))
    tokens   1 2 2 _ _ _
    targets  . . . 1 1 0

    Target i is symbol T - 1 - i of T; symbol 2 is class 1. Symbols are independent and uniform on
    the alphabet. With two of them and appended answers it is the source's task.

    Source: Delétang et al. 2022, reverse string (arXiv:2207.02098).

    Raises:
        ValueError: If the alphabet is below 2, or there is no such place to answer at.
    """

    name: ClassVar[str] = "reverse"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "answer_at", "length")

    def __init__(self, alphabet: int = 8, answer_at: StringPlace = "in_place") -> None:
        super().__init__(alphabet, answer_at)

    @property
    def min_length(self) -> int:
        return 2

    def answer(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch output"]:
        return symbols.flip(1) - 1

    def copied(self, length: int) -> Int[Tensor, " output"]:
        return torch.arange(length - 1, -1, -1)
