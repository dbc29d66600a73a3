"""Previous occurrence: what followed the last time."""

from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from studies.tasks._floors import UNSCORED, chance_within
from studies.tasks.task import (
    Batch,
    Floors,
    Task,
    check_alphabet,
    to_one_key,
    uniform_tokens,
    whole,
)


class PreviousOccurrence(Task):
    """Give the token that followed the last time this token was seen: an induction step.

    >>> print(PreviousOccurrence().show([1, 2, 1, 3, 1, 1]))
    tokens   1 2 1 3 1 1
    targets  . . 1 . 2 0

    Before index 4, symbol 1 was last followed by 3, which is class 2.

    Target i is token j + 1 for the largest j < i with token j = token i; unscored where there is
    no such j. Tokens are independent and uniform on the alphabet.

    Raises:
        ValueError: If the alphabet is below 2.
    """

    name: ClassVar[str] = "previous_occurrence"
    readout = "tokens"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "length")

    def __init__(self, alphabet: int = 8) -> None:
        check_alphabet(self.name, alphabet)
        self.alphabet = alphabet

    @property
    def vocab_size(self) -> int:
        return self.alphabet + 1

    @property
    def n_classes(self) -> int:
        return self.alphabet

    @property
    def min_length(self) -> int:
        return 2

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        self.check_length(length)
        tokens = uniform_tokens(generator, batch, length, self.alphabet)
        return whole(tokens, self.solve(tokens))

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, "batch seq"]:
        follower, again = _followers(tokens)
        return (tokens.gather(1, follower) - 1).masked_fill(~again, UNSCORED)

    def links(self, tokens: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch query key"]:
        follower, again = _followers(tokens)
        return to_one_key(follower, again)

    def measure_floors(self, length: int) -> Floors:
        r"""Given the bag, an answer is symbol s with chance $c_s / T$, over its random orders.

        Two occurrences in a row are neighbours, and the answer is the symbol itself, with chance
        $c_v / T$; otherwise it is a random token of the others. A bag scores T - D positions,
        where D is its number of distinct symbols, so the floor is
        $E[(T - D) \max_s c_s] / (T E[T - D])$.
        """
        size, total = self.alphabet, torch.tensor([length])
        absent = (1 - 1 / size) ** length
        # E[T - D; all counts within m], as a symbol is in the bag unless all tokens are others.
        within = (length - size) * chance_within(total, size, float(length))
        within = within + size * absent * chance_within(total, size - 1, float(length))
        scored = length - size + size * absent
        chance = 1 / size
        return Floors(chance, chance, ((scored - within).sum() / (length * scored)).item())


def _followers(
    tokens: Int[Tensor, "batch seq"],
) -> tuple[Int[Tensor, "batch seq"], Bool[Tensor, "batch seq"]]:
    """The index behind the last occurrence of each token, and whether it has been seen before."""
    # A stable sort puts the occurrences of a symbol side by side, in their order.
    ordered, origin = tokens.sort(dim=1, stable=True)
    earlier, later = origin[:, :-1], origin[:, 1:]
    behind = (earlier + 1).clamp(max=tokens.shape[1] - 1)
    again = ordered[:, :-1] == ordered[:, 1:]
    seen = torch.zeros_like(tokens, dtype=torch.bool).scatter(1, later, again)
    return torch.zeros_like(tokens).scatter(1, later, behind), seen
