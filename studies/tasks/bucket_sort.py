import torch
from einops import rearrange
from scipy.special import bdtrc

from studies.tasks._floors import share_of_commonest
from studies.tasks._shapes import Outputs, StringPlace, UniformString
from studies.tasks.task import Floors, Symbols


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
    """

    name = "bucket_sort"
    min_length = 2

    def __init__(self, alphabet: int = 5, answer_at: StringPlace = "in_place") -> None:
        super().__init__(alphabet, answer_at)

    def answer(self, symbols: Symbols) -> Outputs:
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
