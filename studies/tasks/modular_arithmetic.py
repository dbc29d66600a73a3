import torch
from einops import rearrange, repeat
from jaxtyping import Float
from torch import Generator, Tensor

from studies.tasks._floors import score_of_choice
from studies.tasks._shapes import Answers, OneAnswer, Place
from studies.tasks.task import Floors, Symbols, check_least, uniform_tokens

BAGS, ORDERS = 128, 128


class ModularArithmetic(OneAnswer):
    """Give the value of an expression of numbers with + - * modulo `modulus`: one answer.

    >>> print(ModularArithmetic().show([2, 6, 3, 8, 4]))
    tokens   1 + 2 * 3 _
    answer   2
    >>> print(ModularArithmetic().show([1, 8, 2, 6, 5, 8, 4, 7, 3]))
    tokens   0 * 1 + 4 * 3 - 2 _
    answer   0

    Multiplication comes first, then the rest from the left. Number d is token d + 1; numbers and
    operators are independent and uniform. A sequence has an odd number of tokens; an even length
    gives one token less.

    Source: Delétang et al. 2022, modular arithmetic (simple) (arXiv:2207.02098): modulo 5.
    """

    name = "modular_arithmetic"

    def __init__(self, modulus: int = 5, answer_at: Place = "appended") -> None:
        check_least(self.name, 2, modulus=modulus)
        self.modulus = self.n_classes = modulus
        self.n_symbols = modulus + 3
        self.words = [*map(str, range(modulus)), *"+-*"]
        super().__init__(answer_at)

    def seq(self, length: int) -> int:
        return super().seq(length - (length + 1) % 2)

    def draw(self, generator: Generator, batch: int, length: int) -> Symbols:
        symbols = uniform_tokens(generator, batch, length - (length + 1) % 2, self.modulus)
        pairs = symbols.shape[1] // 2
        symbols[:, 1::2] = self.modulus + uniform_tokens(generator, batch, pairs, alphabet=3)
        return symbols

    def answer(self, symbols: Symbols) -> Answers:
        operators, numbers = symbols[:, 1::2] - self.modulus, symbols[:, 0::2] - 1
        total, term = torch.zeros_like(numbers[:, 0]), numbers[:, 0]
        for operator, number in zip(operators.unbind(1), numbers[:, 1:].unbind(1), strict=True):
            times = operator == 3
            total = torch.where(times, total, total + term)
            next_term = torch.where(operator == 2, -number, number)
            term = torch.where(times, term * number, next_term) % self.modulus
        return (total + term) % self.modulus

    def measure_floors(self, length: int) -> Floors:
        """The likeliest value; for a bag, that among random orders of its numbers and operators.

        The orders are drawn, half of them to choose a value and half to score it.
        """
        likeliest = self._values(length).max().item()
        generator = torch.Generator().manual_seed(0)
        symbols = self.draw(generator, BAGS, length)
        many = repeat(symbols, "bag symbol -> (bag order) symbol", order=ORDERS)
        noise = torch.rand(many.shape, generator=generator)
        for part in (slice(0, None, 2), slice(1, None, 2)):
            many[:, part] = many[:, part].gather(1, noise[:, part].argsort(dim=1))
        halves = rearrange(self.answer(many), "(bag two order) -> two bag order", bag=BAGS, two=2)
        bag = score_of_choice(halves[0], halves[1], self.modulus)
        return Floors(likeliest, likeliest, max(likeliest, bag))

    def _values(self, length: int) -> Float[Tensor, " value"]:
        """The law of the value, from that of (sum of the finished terms, term) step by step."""
        size = self.modulus
        index = torch.arange(size)
        law = torch.zeros(size, size, dtype=torch.float64)
        law[0] = 1 / size
        term, number = rearrange(index, "term -> term 1"), index
        product, total = (term * number) % size, (term + number) % size
        for _ in range((length - 1) // 2):
            finished = torch.zeros(size, dtype=torch.float64)
            finished = finished.index_add(0, total.flatten(), law.flatten())
            added = repeat(finished / size, "total -> total term", term=size)
            times = torch.zeros_like(law).index_add(
                1, product.flatten(), repeat(law / size, "total term -> total (term n)", n=size)
            )
            law = 2 / 3 * added + 1 / 3 * times
        return torch.zeros(size, dtype=torch.float64).index_add(0, total.flatten(), law.flatten())
