import torch

from studies.tasks._shapes import Copied, Outputs, StringPlace, UniformString
from studies.tasks.task import Symbols


class Reverse(UniformString):
    """Give the sequence backwards: the distance differs at each position.

    >>> print(Reverse().show([3, 1, 4, 2]))
    tokens   3 1 4 2
    targets  1 3 0 2
    >>> print(Reverse(alphabet=2, answer_at="appended").show([1, 2, 2]))
    tokens   1 2 2 _ _ _
    targets  . . . 1 1 0

    Target i is symbol T - 1 - i of T; symbol 2 is class 1. Symbols are independent and uniform on
    the alphabet. With two of them and appended answers it is the source's task.

    Source: Delétang et al. 2022, reverse string (arXiv:2207.02098).
    """

    name = "reverse"
    min_length = 2

    def __init__(self, alphabet: int = 8, answer_at: StringPlace = "in_place") -> None:
        super().__init__(alphabet, answer_at)

    def answer(self, symbols: Symbols) -> Outputs:
        return symbols.flip(1) - 1

    def copied(self, length: int) -> Copied:
        return torch.arange(length - 1, -1, -1)
