import torch
from einops import repeat

from studies.tasks._shapes import Copied, Outputs, UniformString
from studies.tasks.task import Symbols, check_least


class Duplicate(UniformString):
    """Give the sequence several times over, at empty tokens behind it.

    >>> print(Duplicate().show([2, 1, 2]))
    tokens   2 1 2 _ _ _ _ _ _
    targets  . . . 1 0 1 1 0 1

    Answer j is symbol j mod T of T; symbol 2 is class 1. Symbols are independent and uniform on
    the alphabet.

    Source: Delétang et al. 2022, duplicate string (arXiv:2207.02098): two symbols, twice.
    """

    name = "duplicate"

    def __init__(self, alphabet: int = 2, times: int = 2) -> None:
        super().__init__(alphabet)
        check_least(self.name, 1, times=times)
        self.times = times

    def outputs(self, length: int) -> int:
        return self.times * length

    def answer(self, symbols: Symbols) -> Outputs:
        return repeat(symbols - 1, "batch symbol -> batch (times symbol)", times=self.times)

    def copied(self, length: int) -> Copied:
        return torch.arange(self.times * length) % length
