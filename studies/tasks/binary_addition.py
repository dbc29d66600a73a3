import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from studies.tasks._bits import SIGN, TwoNumbers
from studies.tasks._floors import score_of_bags
from studies.tasks._shapes import Outputs, stopped
from studies.tasks.task import Floors, Symbols


class BinaryAddition(TwoNumbers):
    """Give the sum of two numbers, lowest bit first, then a stop.

    >>> print(BinaryAddition().show([1, 1, 2, 3, 1, 2, 2, 1, 2]))
    tokens   0 0 1 + 0 1 1 0 1 _ _ _ _ _ _ _ _ _ _
    targets  . . . . . . . . . 0 1 0 1 1 2 . . . .

    That is 4 + 22 = 26. The first number has 1 to T - 2 bits, uniform, of T tokens; both numbers
    are uniform among those of their length but 0, with leading zeros. The sum has none. Class 2 is
    the stop; what follows it is unscored. The source has shorter sequences without a sum too;
    they are left out here.

    Source: Delétang et al. 2022, binary addition (arXiv:2207.02098).
    """

    name = "binary_addition"
    words = "01+"

    def outputs(self, length: int) -> int:
        return length + 1

    def answer(self, symbols: Symbols) -> Outputs:
        first, second = _numbers(symbols)
        carry = torch.zeros_like(first[:, 0])
        digits: list[Tensor] = []
        for one, other in zip(first.unbind(1), second.unbind(1), strict=True):
            total = one + other + carry
            digits.append(total % 2)
            carry = total // 2
        answer = rearrange([*digits, carry], "digit batch -> batch digit")
        output = torch.arange(answer.shape[1], device=symbols.device)
        bits = (output * answer).amax(dim=1, keepdim=True) + 1
        return stopped(answer, bits)

    def measure_floors(self, length: int) -> Floors:
        """The constant and the index from the law of each bit, the bag from drawn sequences."""
        hits = _bit_laws(length)
        scored = hits.sum()
        constant = (hits.sum(dim=1).amax() / scored).item()
        index = (hits.amax(dim=0).sum() / scored).item()
        bag = score_of_bags(*self.examples(length, 16_384, 2**21), self.n_classes)
        return Floors(constant, index, max(constant, bag))


def _numbers(symbols: Symbols) -> tuple[Symbols, Symbols]:
    """The bits of both numbers, lowest first, filled up with zeros."""
    length = symbols.shape[1]
    index = torch.arange(length, device=symbols.device)
    plus = (symbols == SIGN).long().argmax(dim=1, keepdim=True)
    behind = plus + 1 + index
    second = symbols.gather(1, behind.clamp(max=length - 1)) - 1
    return (symbols - 1).where(index < plus, 0), second.where(behind < length, 0)


def _bit_laws(length: int) -> Float[Tensor, "label output"]:
    r"""How likely output j is a 0, a 1, the stop; the rest is unscored.

    For a number of a bits and one of b >= a, both from 1 on, there are $(2^a - 1)(2^b - 1)$ pairs.
    Bit j of the sum is 1 in $2^{a+b-1}$ of all pairs with zeros where j < b, less those where one
    number is 0, and in $2^a (2^a - 1) / 2$ of them where j = b. Below $2^j$ are
    $(2^j - 1)(2^j - 2) / 2$ sums where j <= a, and $(2^a - 1)(2^j - 1 - 2^{a-1})$ where j is
    between a and b. Shares of $2^{a+b}$ keep all this in range.
    """
    split = torch.arange(1, length - 1, dtype=torch.float64)
    other = length - 1 - split
    a = rearrange(torch.minimum(split, other), "split -> split 1")
    b = rearrange(torch.maximum(split, other), "split -> split 1")
    j = torch.arange(length + 1, dtype=torch.float64)
    pairs = (1 - 2**-a) * (1 - 2**-b)
    inside = (1 - 2**-a * (j < b) - 2**-b * (j < a)) / 2
    carried = 2 ** (a - b) * (1 - 2**-a) / 2
    ones = torch.where(j < b, inside, carried.where(j == b, 0.0)) / pairs
    low = 2 ** (2 * j - a - b - 1).clamp(max=0) * (1 - 2**-j) * (1 - 2 ** (1 - j))
    middle = (1 - 2**-a) * (2 ** (j - b).clamp(max=0) - 2**-b - 2 ** (a - b) / 2)
    below = torch.where(j <= a, low, middle.where(j <= b, pairs)) / pairs
    stop = below.diff(dim=1, prepend=torch.zeros_like(a))
    return rearrange(
        [1 - below - ones, ones, stop], "label split output -> label output split"
    ).mean(-1)
