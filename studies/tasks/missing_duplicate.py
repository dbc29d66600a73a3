import torch
from einops import repeat
from torch import Generator

from studies.tasks._shapes import Answers, Needed, OneAnswer, Place
from studies.tasks.task import Floors, Symbols, check_least, uniform_tokens


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
    """

    name = "missing_duplicate"
    min_length = 2

    def __init__(self, alphabet: int = 2, answer_at: Place = "appended") -> None:
        check_least(self.name, 2, alphabet=alphabet)
        self.alphabet = self.n_classes = alphabet
        self.hidden, self.filler = alphabet + 1, alphabet + 2
        self.n_symbols = alphabet + 2
        super().__init__(answer_at)

    def draw(self, generator: Generator, batch: int, length: int) -> Symbols:
        half = uniform_tokens(generator, batch, length // 2, self.alphabet)
        symbols = torch.full((batch, length), self.filler)
        symbols[:, : 2 * half.shape[1]] = repeat(half, "batch half -> batch (twice half)", twice=2)
        place = torch.randint(2 * half.shape[1], (batch, 1), generator=generator)
        return symbols.scatter(1, place, self.hidden)

    def answer(self, symbols: Symbols) -> Answers:
        twin = symbols.masked_fill(~self.needs(symbols), 0)
        return twin.sum(dim=1) - 1

    def needs(self, symbols: Symbols) -> Needed:
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
