"""Bucket sort: the sequence in order of its symbols."""

from typing import ClassVar

import torch
from einops import rearrange
from jaxtyping import Int
from scipy.special import bdtrc
from torch import Tensor

from studies.tasks._floors import share_of_commonest
from studies.tasks._shapes import StringPlace, UniformString
from studies.tasks.task import Floors


class BucketSort(UniformString):
    """Give the sequence in ascending order: few symbols, so counting is enough.

    >>> print(BucketSort().show([3, 1, 2, 1]))
    tokens   3 1 2 1
    targets  0 0 1 2
    >>> print(BucketSort(answer_at="appended").show([3, 1, 2]))
    tokens   3 1 2 _ _ _
    targets  . . . 0 1 2

    Target i is the i-th smallest symbol; symbol 1 is class 0. Symbols are independent and uniform
    on the alphabet. The index says much: the first outputs are small and the last ones large, so
    read skill and exact match rather than accuracy. With appended answers it is the source's task.

    Source: Delétang et al. 2022, bucket sort (arXiv:2207.02098).

    Raises:
        ValueError: If the alphabet is below 2, or there is no such place to answer at.
    """

    name: ClassVar[str] = "bucket_sort"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "answer_at", "length")

    def __init__(self, alphabet: int = 5, answer_at: StringPlace = "in_place") -> None:
        super().__init__(alphabet, answer_at)

    @property
    def min_length(self) -> int:
        return 2

    def answer(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch output"]:
        return symbols.sort(dim=1).values - 1

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
