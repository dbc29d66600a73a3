"""Bucket sort: the sequence in order of its symbols."""

from typing import ClassVar

import torch
from einops import rearrange
from jaxtyping import Int
from scipy.special import bdtrc
from torch import Tensor

from studies.tasks._bags import share_of_commonest
from studies.tasks.task import Batch, Floors, Task, check_alphabet, uniform_tokens, whole


class BucketSort(Task):
    """Give the sequence in ascending order, in place: few symbols, so counting is enough.

        tokens   3 1 2 1
        targets  0 0 1 2        symbol 1 is class 0

    Target i is the i-th smallest token. Tokens are independent and uniform on the alphabet.
    The index says much: the first outputs are small and the last ones large, so read skill
    and exact match rather than accuracy.

    Raises:
        ValueError: If the alphabet is below 2.
    """

    name: ClassVar[str] = "bucket_sort"
    readout: ClassVar[str] = "tokens"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "length")

    def __init__(self, alphabet: int = 5) -> None:
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
        return tokens.sort(dim=1).values - 1

    def measure_floors(self, length: int) -> Floors:
        r"""The i-th smallest token is at most class s when more than i tokens are.

        $P(\text{target}_i \le s) = P(\mathrm{Binomial}(T, (s + 1) / \text{alphabet}) > i)$
        """
        index = rearrange(torch.arange(length), "output -> output 1")
        bounds = torch.arange(self.alphabet + 1, dtype=torch.float64) / self.alphabet
        at_most = torch.as_tensor(bdtrc(index.numpy(), length, bounds.numpy()))
        by_index = at_most.diff(dim=1).amax(dim=1).mean().item()
        bag = share_of_commonest(length, self.alphabet)
        return Floors(1 / self.alphabet, by_index, bag)
