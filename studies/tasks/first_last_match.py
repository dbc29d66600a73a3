import torch
from torch import Generator

from studies.tasks._floors import draw_counts
from studies.tasks._shapes import Answers, Needed, OneAnswer, Place, both_ends
from studies.tasks.task import Floors, Symbols, check_least, uniform_tokens

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
    """

    name = "first_last_match"
    n_classes, min_length = 2, 2

    def __init__(self, alphabet: int = 8, answer_at: Place = "last") -> None:
        check_least(self.name, 2, alphabet=alphabet)
        self.alphabet = self.n_symbols = alphabet
        super().__init__(answer_at)

    def draw(self, generator: Generator, batch: int, length: int) -> Symbols:
        tokens = uniform_tokens(generator, batch, length, self.alphabet)
        equal = torch.randint(2, (batch,), generator=generator) == 1
        step = torch.randint(1, self.alphabet, (batch,), generator=generator)
        first = tokens[:, 0] - 1
        tokens[:, -1] = torch.where(equal, first, (first + step) % self.alphabet) + 1
        return tokens

    def answer(self, symbols: Symbols) -> Answers:
        return (symbols[:, 0] == symbols[:, -1]).long()

    def needs(self, symbols: Symbols) -> Needed:
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
