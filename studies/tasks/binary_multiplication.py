import torch

from studies.tasks._bits import SIGN, TwoNumbers, number_of, to_bits
from studies.tasks._floors import UNSCORED, constant_and_index, score_of_bags
from studies.tasks._shapes import STOP, Outputs
from studies.tasks.task import Floors, Symbols


class BinaryMultiplication(TwoNumbers):
    """Give the product of two numbers, lowest bit first, then a stop.

    >>> print(BinaryMultiplication().show([1, 1, 2, 3, 1, 2, 2, 1, 2]))
    tokens   0 0 1 * 0 1 1 0 1 _ _ _ _ _ _ _ _ _
    targets  . . . . . . . . . 0 0 0 1 1 0 1 2 .

    That is 4 * 22 = 88. The first number has 1 to T - 2 bits, uniform, of T tokens; both numbers
    are uniform among those of their length but 0, with leading zeros. The product has none. Class 2
    is the stop; what follows it is unscored. The source has shorter sequences without a product
    too; they are left out here.

    Source: Delétang et al. 2022, binary multiplication (arXiv:2207.02098).
    """

    name = "binary_multiplication"
    words = "01*"

    def answer(self, symbols: Symbols) -> Outputs:
        length = symbols.shape[1]
        answers = [_product(row, length) for row in symbols.tolist()]
        return torch.tensor(answers, device=symbols.device)

    def measure_floors(self, length: int) -> Floors:
        """Counted on drawn sequences: chosen on half of them, scored on the other half."""
        symbols, answers = self.examples(length, 4096, 2**20)
        constant, index = constant_and_index(answers[0::2], answers[1::2], self.n_classes)
        bag = score_of_bags(symbols, answers, self.n_classes)
        return Floors(constant, index, max(constant, bag))


def _product(row: list[int], length: int) -> list[int]:
    """The answer to one question, as long as the question."""
    sign = row.index(SIGN) if SIGN in row else length
    first, second = ([token - 1 for token in part] for part in (row[:sign], row[sign + 1 :]))
    product = number_of(first[::-1] or [0]) * number_of(second[::-1] or [0])
    answer = [*to_bits(product, 1)[::-1], STOP]
    return answer + [UNSCORED] * (length - len(answer))
