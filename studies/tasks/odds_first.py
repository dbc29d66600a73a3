"""Odds first: the symbols at odd indices, then those at even ones."""

from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from studies.tasks._floors import share_of_commonest
from studies.tasks._shapes import AnswerString, StringPlace
from studies.tasks.task import Floors, check_alphabet, uniform_tokens


class OddsFirst(AnswerString):
    """Give the symbols at odd indices first, then those at even indices, counted from 0.

    >>> print(OddsFirst().show([1, 1, 2, 2, 1]))
    tokens   1 1 2 2 1 _ _ _ _ _
    targets  . . . . . 0 1 0 1 0

    Symbol 2 is class 1. Symbols are independent and uniform on the alphabet. The paper counts from
    1; its code, which is followed here, takes indices 1, 3, 5, … and then 0, 2, 4, …

    Source: Delétang et al. 2022, odds first (arXiv:2207.02098): two symbols, appended answers.

    Raises:
        ValueError: If the alphabet is below 2, or there is no such place to answer at.
    """

    name: ClassVar[str] = "odds_first"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "answer_at", "length")

    def __init__(self, alphabet: int = 2, answer_at: StringPlace = "appended") -> None:
        check_alphabet(self.name, alphabet)
        self.alphabet = alphabet
        super().__init__(answer_at)

    @property
    def n_symbols(self) -> int:
        return self.alphabet

    @property
    def n_classes(self) -> int:
        return self.alphabet

    def draw(
        self, generator: torch.Generator, batch: int, length: int
    ) -> Int[Tensor, "batch symbol"]:
        return uniform_tokens(generator, batch, length, self.alphabet)

    def answer(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch output"]:
        return symbols[:, self.copied(symbols.shape[1])] - 1

    def copied(self, length: int) -> Int[Tensor, " output"]:
        index = torch.arange(length)
        return torch.cat([index[1::2], index[0::2]])

    def measure_floors(self, length: int) -> Floors:
        """Every output is a uniform symbol; of a bag, its commonest symbol is the best guess."""
        chance = 1 / self.alphabet
        return Floors(chance, chance, share_of_commonest(length, self.alphabet))
