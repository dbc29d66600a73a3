"""Reverse: the sequence from its end."""

from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from studies.tasks._bags import share_of_commonest
from studies.tasks.task import Batch, Floors, Task, check_alphabet, uniform_tokens, whole


class Reverse(Task):
    """Give the sequence backwards, in place: the distance differs at each position.

        tokens   3 1 4 2
        targets  1 3 0 2        symbol 2 is class 1

    Target i is token T - 1 - i of T. Tokens are independent and uniform on the alphabet.

    Raises:
        ValueError: If the alphabet is below 2.
    """

    name: ClassVar[str] = "reverse"
    readout: ClassVar[str] = "tokens"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "length")

    def __init__(self, alphabet: int = 8) -> None:
        check_alphabet(self.name, alphabet)
        self.alphabet = alphabet

    @property
    def vocab_size(self) -> int:
        return self.alphabet + 1

    @property
    def n_classes(self) -> int:
        return self.alphabet

    @property
    def min_length(self) -> int:
        return 2

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        self.check_length(length)
        tokens = uniform_tokens(generator, batch, length, self.alphabet)
        return whole(tokens, self.solve(tokens))

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, "batch seq"]:
        return tokens.flip(1) - 1

    def measure_floors(self, length: int) -> Floors:
        chance = 1 / self.alphabet
        return Floors(chance, chance, share_of_commonest(length, self.alphabet))
