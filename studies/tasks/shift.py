import torch

from studies.tasks._shapes import Lookup, Source, uniform_floors
from studies.tasks.task import Floors, Tokens, check_least


class Shift(Lookup):
    """Give the token that stood k positions earlier: one fixed distance, at any length.

    >>> print(Shift(k=2).show([3, 1, 4, 1, 5]))
    tokens   3 1 4 1 5
    targets  . . 2 0 3

    Target i is token i - k, and symbol 3 is class 2; the first k are unscored. Tokens are
    independent and uniform on the alphabet.
    """

    name = "shift"

    def __init__(self, k: int = 3, alphabet: int = 8) -> None:
        check_least(self.name, 1, k=k)
        check_least(self.name, 2, alphabet=alphabet)
        self.k, self.min_length = k, k + 1
        self.alphabet = self.n_symbols = self.n_classes = alphabet

    def source(self, tokens: Tokens) -> Source:
        back = (torch.arange(tokens.shape[1], device=tokens.device) - self.k).expand_as(tokens)
        return back.clamp(min=0), back >= 0

    def measure_floors(self, length: int) -> Floors:
        return uniform_floors(length, self.alphabet)
