"""Duplicate: the sequence, twice over."""

from typing import ClassVar

import torch
from einops import repeat
from jaxtyping import Int
from torch import Tensor

from studies.tasks._floors import share_of_commonest
from studies.tasks._shapes import AnswerString
from studies.tasks.task import Floors, check_alphabet, uniform_tokens


class Duplicate(AnswerString):
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
        check_alphabet(self.name, alphabet)
        if times < 1:
            raise ValueError(
                f"duplicate gives the sequence again, so times must be at least 1; "
                f"got times={times}; ask for 2, say"
            )
        self.alphabet, self.times = alphabet, times
        super().__init__()

    @property
    def n_symbols(self) -> int:
        return self.alphabet

    @property
    def n_classes(self) -> int:
        return self.alphabet

    def outputs(self, length: int) -> int:
        return self.times * length

    def draw(
        self, generator: torch.Generator, batch: int, length: int
    ) -> Int[Tensor, "batch symbol"]:
        return uniform_tokens(generator, batch, length, self.alphabet)

    def answer(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch output"]:
        return repeat(symbols - 1, "batch symbol -> batch (times symbol)", times=self.times)

    def copied(self, length: int) -> Int[Tensor, " output"]:
        return torch.arange(self.times * length) % length

    def measure_floors(self, length: int) -> Floors:
        """Every output is a uniform symbol; of a bag, its commonest symbol is the best guess."""
        chance = 1 / self.alphabet
        return Floors(chance, chance, share_of_commonest(length, self.alphabet))
