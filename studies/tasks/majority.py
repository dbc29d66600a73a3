import torch
from einops import reduce
from torch import Generator

from studies.tasks._floors import UNSCORED
from studies.tasks._shapes import Answers, OneAnswer, Place
from studies.tasks.task import Floors, Symbols, uniform_tokens


class Majority(OneAnswer):
    """Say whether symbol 2 is more frequent than symbol 1: one answer, order does not matter.

    >>> print(Majority().show([2, 1, 2]))
    tokens   2 1 2
    answer   1
    >>> print(Majority().show([1, 1, 2]))
    tokens   1 1 2
    answer   0

    A positive control: one layer that averages solves it, with or without positions. Tokens are
    independent and uniform; where they tie, one token at a random place is turned into the other
    symbol. Swapping the symbols changes nothing in this law, so the answers are balanced at every
    length. `solve` leaves a tie unscored.
    """

    name = "majority"
    n_symbols, n_classes = 2, 2

    def __init__(self, answer_at: Place = "mean") -> None:
        super().__init__(answer_at)

    def draw(self, generator: Generator, batch: int, length: int) -> Symbols:
        tokens = uniform_tokens(generator, batch, length, alphabet=2)
        place = torch.randint(length, (batch, 1), generator=generator)
        turned = tokens.scatter(1, place, 3 - tokens.gather(1, place))
        tie = reduce(2 * tokens - 3, "batch seq -> batch 1", "sum") == 0
        return torch.where(tie, turned, tokens)

    def answer(self, symbols: Symbols) -> Answers:
        lead = reduce(2 * symbols - 3, "batch symbol -> batch", "sum")
        return (lead > 0).long().masked_fill(lead == 0, UNSCORED)

    def measure_floors(self, length: int) -> Floors:
        """The bag gives the answer away."""
        return Floors(constant=0.5, index=0.5, bag=1.0)
