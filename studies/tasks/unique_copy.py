"""Unique copy: a string of distinct symbols, written again."""

from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

from studies.tasks._shapes import Transcript
from studies.tasks.task import Floors, check_alphabet


class UniqueCopy(Transcript):
    """Write a string of distinct symbols again, each predicted from what precedes it.

    >>> print(UniqueCopy(alphabet=5).show([3, 1, 5]))
    tokens   < 3 1 5 : 3 1 5
    targets  . . . . 2 0 4 5

    The tokens are a start `<`, T distinct symbols, a separator `:`, the same symbols; the targets
    end with the end of the text, the last class. The symbols are a random sample without
    replacement from the alphabet, which so bounds T. Only a causal mask hides the answers.

    Source: Huang et al. 2024, unique copy (arXiv:2410.02140): an alphabet of 150, the longest
    length. Their position offsets are a matter of the encoding, not of the task.

    Raises:
        ValueError: If the alphabet is below 2.
    """

    name: ClassVar[str] = "unique_copy"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "length")

    def __init__(self, alphabet: int = 150) -> None:
        check_alphabet(self.name, alphabet)
        super().__init__(alphabet)

    @property
    def specials(self) -> tuple[str, ...]:
        return ("<", ":")

    @property
    def max_length(self) -> int:
        return self.alphabet

    def draw(
        self, generator: torch.Generator, batch: int, length: int
    ) -> Int[Tensor, "batch symbol"]:
        return torch.rand(batch, self.alphabet, generator=generator).argsort(dim=1)[:, :length] + 1

    def prompt(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch prompt"]:
        started = F.pad(symbols, (1, 0), value=self.special(0))
        return F.pad(started, (0, 1), value=self.special(1))

    def reply(self, prompt: Int[Tensor, "batch prompt"]) -> Int[Tensor, "batch reply"]:
        return prompt[:, 1:-1]

    def copied(self, length: int) -> Int[Tensor, " reply"]:
        return torch.arange(1, length - 1)

    def measure_floors(self, length: int) -> Floors:
        """Each symbol comes at most once, so no guess beats the end; the index knows the end."""
        return self.floors_of(length, of_bag=1.0)
