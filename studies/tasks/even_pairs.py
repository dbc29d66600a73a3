import torch
from einops import reduce

from studies.tasks._floors import binomial
from studies.tasks._shapes import Answers, Needed, OneAnswer, Place, both_ends
from studies.tasks.task import Floors, Symbols


class EvenPairs(OneAnswer):
    """Say whether the number of neighbours that differ is odd: one answer, of two symbols.

    >>> print(EvenPairs().show([1, 1, 2, 2, 2, 1]))
    tokens   1 1 2 2 2 1 _
    answer   0
    >>> print(EvenPairs(answer_at="last").show([1, 2, 1, 2, 1, 1, 2]))
    tokens   1 2 1 2 1 1 2
    answer   1

    Each change turns the symbol round, so the number is even where the ends are equal: only the
    first and the last symbol matter. Symbols are independent and uniform. The source has sequences
    of one symbol too, whose answer is always 0; they are left out here.

    Source: Delétang et al. 2022, even pairs (arXiv:2207.02098).
    """

    name = "even_pairs"
    n_symbols, n_classes, min_length = 2, 2, 2

    def __init__(self, answer_at: Place = "appended") -> None:
        super().__init__(answer_at)

    def answer(self, symbols: Symbols) -> Answers:
        changes = (symbols[:, 1:] != symbols[:, :-1]).long()
        return reduce(changes, "batch pair -> batch", "sum") % 2

    def needs(self, symbols: Symbols) -> Needed:
        return both_ends(symbols)

    def measure_floors(self, length: int) -> Floors:
        r"""A share r of the orders of k ones among T symbols have equal ends.

        $r = (k (k - 1) + (T - k) (T - k - 1)) / (T (T - 1))$, and the floor of the bag is
        $E[\max(r, 1 - r)]$ over k, which is Binomial(T, 1/2).
        """
        ones = torch.arange(length + 1, dtype=torch.float64)
        others = length - ones
        equal = (ones * (ones - 1) + others * (others - 1)) / (length * (length - 1))
        bag = (binomial(length, 0.5) * torch.maximum(equal, 1 - equal)).sum().item()
        return Floors(0.5, 0.5, bag)
