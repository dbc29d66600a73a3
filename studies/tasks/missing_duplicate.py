"""Missing duplicate: the hidden symbol of a string written twice."""

from typing import ClassVar

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Int
from torch import Tensor

from studies.tasks._shapes import OneAnswer, Place
from studies.tasks.task import Floors, check_alphabet, uniform_tokens


class MissingDuplicate(OneAnswer):
    """Give the hidden symbol of a string that is written twice: one answer a sequence.

    >>> print(MissingDuplicate().show([1, 2, 2, 1, 1, 3, 2, 1]))
    tokens   1 2 2 1 1 ? 2 1 _
    answer   1
    >>> print(MissingDuplicate().show([2, 1, 2, 2, 3, 2, 4]))
    tokens   2 1 2 2 ? 2 . _
    answer   0

    A string of T // 2 independent uniform symbols is written twice, and one of its 2 (T // 2)
    symbols, uniform among them, is replaced by a token `?`; where T is odd, a filler `.` follows.
    Symbol 2 is class 1. The source also has sequences of one symbol without a question; they are
    left out here.

    Source: Delétang et al. 2022, missing duplicate (arXiv:2207.02098): two symbols.

    Raises:
        ValueError: If the alphabet is below 2, or there is no such place to answer at.
    """

    name: ClassVar[str] = "missing_duplicate"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "answer_at", "length")

    def __init__(self, alphabet: int = 2, answer_at: Place = "appended") -> None:
        check_alphabet(self.name, alphabet)
        self.alphabet = alphabet
        super().__init__(answer_at)

    @property
    def hidden(self) -> int:
        """The id of the token in place of the hidden symbol."""
        return self.alphabet + 1

    @property
    def filler(self) -> int:
        """The id of the token that makes a length odd."""
        return self.alphabet + 2

    @property
    def n_symbols(self) -> int:
        return self.alphabet + 2

    @property
    def n_classes(self) -> int:
        return self.alphabet

    @property
    def min_length(self) -> int:
        return 2

    def draw(
        self, generator: torch.Generator, batch: int, length: int
    ) -> tuple[Int[Tensor, "batch symbol"], Int[Tensor, " batch"]]:
        half = uniform_tokens(generator, batch, length // 2, self.alphabet)
        symbols = torch.full((batch, length), self.filler)
        symbols[:, : 2 * half.shape[1]] = repeat(half, "batch half -> batch (twice half)", twice=2)
        place = torch.randint(2 * half.shape[1], (batch, 1), generator=generator)
        answer = rearrange(symbols.gather(1, place), "batch 1 -> batch") - 1
        return symbols.scatter(1, place, self.hidden), answer

    def answer(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, " batch"]:
        twin = symbols.masked_fill(~self.needs(symbols), 0)
        return twin.sum(dim=1) - 1

    def needs(self, symbols: Int[Tensor, "batch symbol"]) -> Bool[Tensor, "batch symbol"]:
        half = symbols.shape[1] // 2
        asked = (symbols == self.hidden)[:, : 2 * half]
        twin = torch.zeros_like(symbols, dtype=torch.bool)
        twin[:, : 2 * half] = asked.roll(half, dims=1)
        return twin

    def spell(self, token: int) -> str:
        return {self.hidden: "?", self.filler: "."}.get(token) or super().spell(token)

    def measure_floors(self, length: int) -> Floors:
        """The bag gives the answer away: the hidden symbol is the one with an odd count."""
        return Floors(1 / self.alphabet, 1 / self.alphabet, 1.0)
