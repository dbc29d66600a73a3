"""Multi shift: what stood at each of the last positions? Several links at once."""

from typing import ClassVar

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from studies.tasks._floors import UNSCORED, share_of_commonest
from studies.tasks.task import Batch, Floors, Task, check_alphabet, uniform_tokens, whole


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

    Raises:
        ValueError: If offsets is below 1 or the alphabet below 2.
    """

    name: ClassVar[str] = "multi_shift"
    readout = "tokens"
    difficulty: ClassVar[tuple[str, ...]] = ("offsets", "alphabet", "length")

    def __init__(self, offsets: int = 4, alphabet: int = 16) -> None:
        check_alphabet(self.name, alphabet)
        if offsets < 1:
            raise ValueError(
                f"multi_shift looks back, so offsets must be at least 1; got offsets={offsets}; "
                "ask for 1 or more"
            )
        self.offsets, self.alphabet = offsets, alphabet

    @property
    def vocab_size(self) -> int:
        return self.alphabet + 1

    @property
    def n_classes(self) -> int:
        return self.alphabet

    @property
    def answers(self) -> int:
        return self.offsets

    @property
    def min_length(self) -> int:
        return 2

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        self.check_length(length)
        tokens = uniform_tokens(generator, batch, length, self.alphabet)
        return whole(tokens, self.solve(tokens))

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, "batch seq answers"]:
        padded = F.pad(tokens - 1, (self.offsets, 0), value=UNSCORED)
        back = [padded[:, self.offsets - k :][:, : tokens.shape[1]] for k in self._range()]
        return rearrange(back, "answers batch seq -> batch seq answers")

    def links(self, tokens: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch query key"]:
        seq = tokens.shape[1]
        back = torch.ones(seq, seq, dtype=torch.bool, device=tokens.device)
        recent = back.tril(-1) & back.triu(-self.offsets)
        return repeat(recent, "query key -> batch query key", batch=len(tokens))

    def measure_floors(self, length: int) -> Floors:
        """Every answer is a uniform token; of a bag, its commonest symbol is the best guess."""
        chance = 1 / self.alphabet
        return Floors(chance, chance, share_of_commonest(length, self.alphabet))

    def _range(self) -> range:
        return range(1, self.offsets + 1)
