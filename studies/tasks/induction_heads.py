"""Induction heads: what followed a trigger the first time?"""

from typing import ClassVar

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

from studies.tasks._floors import share_of_commonest
from studies.tasks.task import Batch, Floors, Task, check_alphabet, uniform_tokens, whole


class InductionHeads(Task):
    """Give the symbol that followed the trigger, when the trigger comes again at the end.

    >>> print(InductionHeads(alphabet=6).show([3, 7, 5, 2, 6, 7]))
    tokens   3 > 5 2 6 >
    answer   4

    Symbols are independent and uniform on the alphabet. One of the first T - 3 tokens, uniform,
    is replaced by the trigger; the last token is the trigger again, where the answer is read.
    Symbol 5 is class 4.

    Source: Fu et al. 2022, induction head (arXiv:2212.14052): 20 token ids, of which one is the
    trigger and one never comes, and T = 31. Their training predicts every next token; here, as in
    their test, the last answer alone is scored.

    Raises:
        ValueError: If the alphabet is below 2.
    """

    name: ClassVar[str] = "induction_heads"
    readout = "last"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "length")

    def __init__(self, alphabet: int = 18) -> None:
        check_alphabet(self.name, alphabet)
        self.alphabet = alphabet

    @property
    def trigger(self) -> int:
        """The id of the trigger."""
        return self.alphabet + 1

    @property
    def vocab_size(self) -> int:
        return self.alphabet + 2

    @property
    def n_classes(self) -> int:
        return self.alphabet

    @property
    def min_length(self) -> int:
        return 4

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        self.check_length(length)
        tokens = uniform_tokens(generator, batch, length, self.alphabet)
        place = torch.randint(length - 3, (batch, 1), generator=generator)
        answer = rearrange(tokens.gather(1, place + 1), "batch 1 -> batch") - 1
        tokens.scatter_(1, place, self.trigger)
        tokens[:, -1] = self.trigger
        return whole(tokens, answer)

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, " batch"]:
        return rearrange(tokens.gather(1, self._follower(tokens)), "batch 1 -> batch") - 1

    def links(self, tokens: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch query key"]:
        links = torch.zeros(*tokens.shape, tokens.shape[1], dtype=torch.bool, device=tokens.device)
        links[:, -1].scatter_(1, self._follower(tokens), True)
        return links

    def spell(self, token: int) -> str:
        return ">" if token == self.trigger else str(token)

    def measure_floors(self, length: int) -> Floors:
        """Of the T - 2 symbols in a bag, a random one is the answer."""
        chance = 1 / self.alphabet
        return Floors(chance, chance, share_of_commonest(length - 2, self.alphabet))

    def _follower(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, "batch 1"]:
        return (tokens == self.trigger).long().argmax(dim=1, keepdim=True) + 1
