from einops import reduce

from studies.tasks._shapes import Answers, OneAnswer, Place
from studies.tasks.task import Floors, Symbols


class Parity(OneAnswer):
    """Say whether the number of 2s is odd: one answer, and every token can change it.

    >>> print(Parity().show([2, 1, 2, 2]))
    tokens   2 1 2 2
    answer   1
    >>> print(Parity(answer_at="appended").show([2, 1, 2, 1]))
    tokens   2 1 2 1 _
    answer   0

    A leak check: an encoder that scores above 1/2 on long sequences has seen the answers. Tokens
    are independent and uniform on two symbols, so the answers are balanced at every length.
    Read at an appended token it is the source's task.

    Source: Delétang et al. 2022, parity check (arXiv:2207.02098).
    """

    name = "parity"
    n_symbols, n_classes = 2, 2

    def __init__(self, answer_at: Place = "mean") -> None:
        super().__init__(answer_at)

    def answer(self, symbols: Symbols) -> Answers:
        return reduce((symbols == 2).long(), "batch symbol -> batch", "sum") % 2

    def measure_floors(self, length: int) -> Floors:
        """The bag gives the answer away."""
        return Floors(constant=0.5, index=0.5, bag=1.0)
