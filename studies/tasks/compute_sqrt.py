import math

import torch
from torch import Generator

from studies.tasks._bits import number_of, to_bits
from studies.tasks._floors import score_of_bags
from studies.tasks._shapes import AnswerString, Outputs
from studies.tasks.task import Floors, Symbols


class ComputeSqrt(AnswerString):
    """Give the integer square root of a number, highest bit first.

    >>> print(ComputeSqrt().show([2, 1, 1, 2, 1, 2]))
    tokens   1 0 0 1 0 1 _ _ _
    targets  . . . . . . 1 1 0

    That is 6, the root of 37 rounded down. The number has T bits and is uniform among all but 0;
    the root has half as many, rounded up, with leading zeros.

    Source: Delétang et al. 2022, compute sqrt (arXiv:2207.02098).
    """

    name = "compute_sqrt"
    n_symbols, n_classes = 2, 2
    words = "01"

    def outputs(self, length: int) -> int:
        return (length + 1) // 2

    def draw(self, generator: Generator, batch: int, length: int) -> Symbols:
        """Bits of uniform numbers other than 0."""
        drawn = torch.ones(batch, length, dtype=torch.long)
        while (again := (drawn == 1).all(dim=1)).any():
            drawn[again] = torch.randint(1, 3, (int(again.sum()), length), generator=generator)
        return drawn

    def answer(self, symbols: Symbols) -> Outputs:
        size = self.outputs(symbols.shape[1])
        roots = [math.isqrt(number_of(row)) for row in (symbols - 1).tolist()]
        return torch.tensor([to_bits(root, size) for root in roots], device=symbols.device)

    def measure_floors(self, length: int) -> Floors:
        r"""The constant and the index from the law of each bit, the bag from drawn numbers.

        Bit j of the root is 1 for the numbers from $(k b + b / 2)^2$ to below $((k + 1) b)^2$, with
        $b = 2^{j + 1}$ and k = 0, 1, …; up to $2^T$ these are counted exactly.
        """
        ones = [_numbers_with(bit, length) / (2**length - 1) for bit in range(self.outputs(length))]
        share = sum(ones) / len(ones)
        index = sum(max(one, 1 - one) for one in ones) / len(ones)
        constant = max(share, 1 - share)
        bag = score_of_bags(*self.examples(length, 4096, 2**20), self.n_classes)
        return Floors(constant, index, max(constant, bag))


def _numbers_with(bit: int, length: int) -> int:
    """How many of the numbers below 2^length have a root with this bit."""
    block, limit = 2 ** (bit + 1), 2**length
    whole = math.isqrt(limit - 1) // block
    start = whole * block
    rest = min(limit, (start + block) ** 2) - (start + block // 2) ** 2
    return block**2 // 4 * (2 * whole * (whole - 1) + 3 * whole) + max(0, rest)
