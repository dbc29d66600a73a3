"""Shift: what stood k positions earlier."""

from typing import ClassVar

import torch
from einops import repeat
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from studies.tasks._floors import UNSCORED, share_of_commonest
from studies.tasks.task import Batch, Floors, Task, check_alphabet, uniform_tokens, whole


class Shift(Task):
    """Give the token that stood k positions earlier: one fixed distance, at any length.

    >>> print(Shift(k=2).show([3, 1, 4, 1, 5]))
    tokens   3 1 4 1 5
    targets  . . 2 0 3

    Target i is token i - k, and symbol 3 is class 2; the first k are unscored. Tokens are
    independent and uniform on the alphabet.

    Raises:
        ValueError: If k is below 1 or the alphabet below 2.
    """

    name: ClassVar[str] = "shift"
    readout = "tokens"
    difficulty: ClassVar[tuple[str, ...]] = ("k", "alphabet", "length")

    def __init__(self, k: int = 3, alphabet: int = 8) -> None:
        check_alphabet(self.name, alphabet)
        if k < 1:
            raise ValueError(
                f"shift looks back, so k must be at least 1; got k={k}; ask for 1 or more"
            )
        self.k, self.alphabet = k, alphabet

    @property
    def vocab_size(self) -> int:
        return self.alphabet + 1

    @property
    def n_classes(self) -> int:
        return self.alphabet

    @property
    def min_length(self) -> int:
        return self.k + 1

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        self.check_length(length)
        tokens = uniform_tokens(generator, batch, length, self.alphabet)
        return whole(tokens, self.solve(tokens))

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, "batch seq"]:
        return F.pad(tokens - 1, (self.k, 0), value=UNSCORED)[:, : tokens.shape[1]]

    def links(self, tokens: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch query key"]:
        seq = tokens.shape[1]
        back = torch.ones(seq, seq, dtype=torch.bool, device=tokens.device)
        exact = back.tril(-self.k) & back.triu(-self.k)
        return repeat(exact, "query key -> batch query key", batch=len(tokens))

    def measure_floors(self, length: int) -> Floors:
        chance = 1 / self.alphabet
        return Floors(chance, chance, share_of_commonest(length, self.alphabet))
