import torch

from studies.tasks._shapes import Copied, Outputs, StringPlace, UniformString
from studies.tasks.task import Symbols


class OddsFirst(UniformString):
    """Give the symbols at odd indices first, then those at even indices, counted from 0.

    >>> print(OddsFirst().show([1, 1, 2, 2, 1]))
    tokens   1 1 2 2 1 _ _ _ _ _
    targets  . . . . . 0 1 0 1 0

    Symbol 2 is class 1. Symbols are independent and uniform on the alphabet. The paper counts from
    1; its code, which is followed here, takes indices 1, 3, 5, … and then 0, 2, 4, …

    Source: Delétang et al. 2022, odds first (arXiv:2207.02098): two symbols, appended answers.
    """

    name = "odds_first"

    def __init__(self, alphabet: int = 2, answer_at: StringPlace = "appended") -> None:
        super().__init__(alphabet, answer_at)

    def answer(self, symbols: Symbols) -> Outputs:
        return symbols[:, self.copied(symbols.shape[1])] - 1

    def copied(self, length: int) -> Copied:
        index = torch.arange(length)
        return torch.cat([index[1::2], index[0::2]])
