from typing import Literal, get_args

import torch
from torch.nn import functional as F

from studies.tasks._floors import share_of_commonest
from studies.tasks._shapes import Copied, Prompt, Reply, Transcript
from studies.tasks.task import Floors, check_choice

Then = Literal["end", "again", "back"]


class CausalReverse(Transcript):
    """Write a string backwards, each symbol predicted from what precedes it.

    >>> print(CausalReverse(alphabet=5).show([3, 1, 2]))
    tokens   reverse 3 1 2 : 2 1 3
    targets        . . . . 1 0 2 5
    >>> print(CausalReverse(alphabet=5, then="back").show([3, 1]))
    tokens   reverse 3 1 : 1 3 | 3 1
    targets        . . . 0 2 5 2 0 6

    The string has T independent uniform symbols. Then comes the end of the text, the last class
    ("end", their mc), or a divider `|` and the reversed string "again" (mc2x) or the string "back"
    in its first order (mcrv). Only a causal mask hides the answers.

    Source: Kazemnejad et al. 2023 (arXiv:2305.19466): 4 to 20 symbols of 100. Words stand for one
    token.
    """

    name = "causal_reverse"
    specials = ("reverse", ":")

    def __init__(self, alphabet: int = 100, then: Then = "end") -> None:
        super().__init__(alphabet)
        check_choice(self.name, "then", then, get_args(Then))
        self.then: Then = then
        self.divided = then != "end"

    def reply(self, prompt: Prompt) -> Reply:
        string = prompt[:, 1:-1]
        turned = string.flip(1)
        if not self.divided:
            return turned
        second = turned if self.then == "again" else string
        return torch.cat([F.pad(turned, (0, 1), value=self.divider), second], dim=1)

    def copied(self, length: int) -> Copied | None:
        return None if self.divided else torch.arange(length - 2, 0, -1)

    def measure_floors(self, length: int) -> Floors:
        """Of a bag, its commonest symbol is the best guess."""
        symbols = length * (1 + self.divided)
        return self.floors_of(symbols, symbols * share_of_commonest(length, self.alphabet))
