"""First and last: are the two ends the same symbol?"""

from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from studies.tasks._floors import draw_counts
from studies.tasks._shapes import OneAnswer, Place, both_ends
from studies.tasks.task import Floors, check_alphabet, uniform_tokens

BAGS = 65_536


class FirstLastMatch(OneAnswer):
    """Say whether the last symbol equals the first: one answer a sequence.

    >>> print(FirstLastMatch().show([3, 1, 4, 3]))
    tokens   3 1 4 3
    answer   1
    >>> print(FirstLastMatch(answer_at="prepended").show([3, 1, 3, 4]))
    tokens   _ 3 1 3 4
    answer   0

    The answer is drawn first, both with chance 1/2. All symbols but the last are independent and
    uniform; the last is the first again, or uniform on the other symbols.

    Raises:
        ValueError: If the alphabet is below 2, or there is no such place to answer at.
    """

    name: ClassVar[str] = "first_last_match"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "answer_at", "length")

    def __init__(self, alphabet: int = 8, answer_at: Place = "last") -> None:
        check_alphabet(self.name, alphabet)
        self.alphabet = alphabet
        super().__init__(answer_at)

    @property
    def n_symbols(self) -> int:
        return self.alphabet

    @property
    def n_classes(self) -> int:
        return 2

    @property
    def min_length(self) -> int:
        return 2

    def draw(
        self, generator: torch.Generator, batch: int, length: int
    ) -> tuple[Int[Tensor, "batch symbol"], Int[Tensor, " batch"]]:
        tokens = uniform_tokens(generator, batch, length, self.alphabet)
        answer = torch.randint(2, (batch,), generator=generator)
        step = torch.randint(1, self.alphabet, (batch,), generator=generator)
        first = tokens[:, 0] - 1
        tokens[:, -1] = torch.where(answer == 1, first, (first + step) % self.alphabet) + 1
        return tokens, answer

    def answer(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, " batch"]:
        return (symbols[:, 0] == symbols[:, -1]).long()

    def needs(self, symbols: Int[Tensor, "batch symbol"]) -> Bool[Tensor, "batch symbol"]:
        return both_ends(symbols)

    def measure_floors(self, length: int) -> Floors:
        r"""A share r of the orders of a bag have equal ends.

        $r = \sum_s c_s (c_s - 1) / (T (T - 1))$

        An order with equal ends is drawn alphabet - 1 times as often as one without, so "yes" is
        the better guess where r > (1 - r) / (A - 1), that is r > 1 / A. Averaged over the bags of
        independent tokens the floor is $1/2 + A^2 / (2 (A - 1)) \; E[\max(r - 1 / A, 0)]$.
        """
        size = self.alphabet
        totals = torch.full((BAGS,), float(length))
        counts = draw_counts(torch.Generator().manual_seed(0), totals, size)
        equal_ends = (counts * (counts - 1)).sum(dim=1) / (length * (length - 1))
        gain = (equal_ends - 1 / size).clamp(min=0).mean().item()
        return Floors(0.5, 0.5, 0.5 + size**2 / (2 * (size - 1)) * gain)
