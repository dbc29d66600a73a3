import torch
from einops import rearrange, repeat
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

from studies.tasks._floors import UNSCORED
from studies.tasks._shapes import uniform_floors
from studies.tasks.task import Floors, Links, Task, Tokens, check_least


class MultiShift(Task):
    """Give the tokens at all of the last few positions at once: one link an offset.

    >>> print(MultiShift(offsets=3).show([3, 1, 4, 1, 5]))
    tokens   3 1 4 1 5
    targets  . 2 0 3 0
    targets  . . 2 0 3
    targets  . . . 2 0

    Answer k of position i is token i - k, for k = 1..offsets; symbol 3 is class 2. A model gives
    the logits of all of them at once, so one head with one link is not enough. Tokens are
    independent and uniform on the alphabet.
    """

    name = "multi_shift"
    readout = "tokens"
    min_length = 2

    def __init__(self, offsets: int = 4, alphabet: int = 16) -> None:
        check_least(self.name, 1, offsets=offsets)
        check_least(self.name, 2, alphabet=alphabet)
        self.offsets = self.answers = offsets
        self.alphabet = self.n_symbols = self.n_classes = alphabet

    def solve(self, tokens: Tokens) -> Int[Tensor, "batch seq answers"]:
        earlier = [
            F.pad(tokens - 1, (k, 0), value=UNSCORED)[:, : tokens.shape[1]]
            for k in range(1, self.offsets + 1)
        ]
        return rearrange(earlier, "answers batch seq -> batch seq answers")

    def links(self, tokens: Tokens) -> Links:
        seq = tokens.shape[1]
        back = torch.ones(seq, seq, dtype=torch.bool, device=tokens.device)
        recent = back.tril(-1) & back.triu(-self.offsets)
        return repeat(recent, "query key -> batch query key", batch=len(tokens))

    def measure_floors(self, length: int) -> Floors:
        return uniform_floors(length, self.alphabet)
