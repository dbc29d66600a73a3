import torch
from einops import rearrange
from jaxtyping import Int
from torch import Generator, Tensor

from studies.tasks._shapes import uniform_floors
from studies.tasks.task import Floors, Links, Task, Tokens, check_least, uniform_tokens


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
    """

    name = "induction_heads"
    readout = "last"
    min_length = 4

    def __init__(self, alphabet: int = 18) -> None:
        check_least(self.name, 2, alphabet=alphabet)
        self.alphabet = self.n_classes = alphabet
        self.n_symbols = self.trigger = alphabet + 1

    def draw(self, generator: Generator, batch: int, length: int) -> Tokens:
        tokens = uniform_tokens(generator, batch, length, self.alphabet)
        place = torch.randint(length - 3, (batch, 1), generator=generator)
        tokens.scatter_(1, place, self.trigger)
        tokens[:, -1] = self.trigger
        return tokens

    def solve(self, tokens: Tokens) -> Int[Tensor, " batch"]:
        return rearrange(tokens.gather(1, self._follower(tokens)), "batch 1 -> batch") - 1

    def links(self, tokens: Tokens) -> Links:
        links = torch.zeros(*tokens.shape, tokens.shape[1], dtype=torch.bool, device=tokens.device)
        links[:, -1].scatter_(1, self._follower(tokens), True)
        return links

    def spell(self, token: int) -> str:
        return ">" if token == self.trigger else str(token)

    def measure_floors(self, length: int) -> Floors:
        """Of the T - 2 symbols in a bag, a random one is the answer."""
        return uniform_floors(length - 2, self.alphabet)

    def _follower(self, tokens: Tokens) -> Int[Tensor, "batch 1"]:
        return (tokens == self.trigger).long().argmax(dim=1, keepdim=True) + 1
