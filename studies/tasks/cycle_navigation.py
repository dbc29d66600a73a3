import math

import torch
from einops import rearrange, reduce

from studies.tasks._shapes import Answers, OneAnswer, Place
from studies.tasks.task import Floors, Symbols, check_least


class CycleNavigation(OneAnswer):
    """Give the state on a circle after steps back, forth or none, from state 0: one answer.

    >>> print(CycleNavigation().show([3, 1, 2, 1, 1]))
    tokens   + - 0 - - _
    answer   3
    >>> print(CycleNavigation().show([3, 3, 3, 1]))
    tokens   + + + - _
    answer   2

    Tokens 1, 2, 3 are the steps -1, 0, +1; they are independent and uniform. The order of the
    steps does not matter, but all of them do.

    Source: Delétang et al. 2022, cycle navigation (arXiv:2207.02098): 5 states.
    """

    name = "cycle_navigation"
    n_symbols = 3
    words = "-0+"

    def __init__(self, states: int = 5, answer_at: Place = "appended") -> None:
        check_least(self.name, 2, states=states)
        self.states = self.n_classes = states
        super().__init__(answer_at)

    def answer(self, symbols: Symbols) -> Answers:
        return reduce(symbols - 2, "batch symbol -> batch", "sum") % self.states

    def measure_floors(self, length: int) -> Floors:
        r"""The bag gives the answer away; the rest is the chance of the likeliest state.

        State s has a chance of
        $\frac1n \sum_k ((1 + 2 \cos(2 \pi k / n)) / 3)^T \cos(2 \pi k s / n)$.
        """
        state = torch.arange(self.states, dtype=torch.float64)
        turns = 2 * math.pi * state / self.states
        waves = (rearrange(state, "state -> state 1") * turns).cos()
        likeliest = (((1 + 2 * turns.cos()) / 3) ** length * waves).mean(dim=1).max().item()
        return Floors(likeliest, likeliest, 1.0)
