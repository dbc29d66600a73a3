from typing import Literal, get_args

import torch
from einops import repeat
from torch import Generator
from torch.nn import functional as F

from studies.tasks._floors import share_of_commonest
from studies.tasks._shapes import Copied, Prompt, Reply, Transcript
from studies.tasks.task import Floors, Symbols, check_choice, uniform_tokens

Form = Literal["random", "one_symbol", "replace"]


class CausalCopy(Transcript):
    """Write a string again, each symbol predicted from what precedes it.

    >>> print(CausalCopy(alphabet=5).show([3, 1, 1]))
    tokens   copy 3 1 1 : 3 1 1
    targets     . . . . 2 0 0 5
    >>> print(CausalCopy(alphabet=5, form="replace").show([3, 4, 3, 3]))
    tokens   replace 3 with 4 in 3 3 : 4 4
    targets        . .    . .  . . . 3 3 5
    >>> print(CausalCopy(alphabet=5, times=2).show([3, 1]))
    tokens   copy 3 1 : 3 1 | 3 1
    targets     . . . 2 0 5 2 0 6

    The string has T symbols. `form` is "random" for independent uniform symbols (their cmc),
    "one_symbol" for a uniform symbol T times (rsc), "replace" for one symbol T times that is to be
    replaced by another (rdc); `times` = 2 writes it twice (2x), random strings with a divider `|`
    between. The targets end with the end of the text, the last class. Only a causal mask hides
    the answers.

    Source: Kazemnejad et al. 2023 (arXiv:2305.19466): 4 to 20 symbols, of 100 in random strings;
    for the other forms as many as they needed for distinct examples. Words stand for one token.
    The binary alphabet is the repeat copy of Huang et al. 2024 (arXiv:2410.02140).
    """

    name = "causal_copy"

    def __init__(
        self, alphabet: int = 100, form: Form = "random", times: Literal[1, 2] = 1
    ) -> None:
        super().__init__(alphabet)
        check_choice(self.name, "form", form, get_args(Form))
        check_choice(self.name, "times", times, (1, 2))
        self.form: Form = form
        self.times: Literal[1, 2] = times
        self.divided = form == "random" and times == 2
        self.specials = ("replace", "with", "in", ":") if form == "replace" else ("copy", ":")

    def draw(self, generator: Generator, batch: int, length: int) -> Symbols:
        if self.form == "random":
            return uniform_tokens(generator, batch, length, self.alphabet)
        symbol = uniform_tokens(generator, batch, 1, self.alphabet)
        if self.form == "one_symbol":
            return repeat(symbol, "batch 1 -> batch length", length=length)
        step = torch.randint(1, self.alphabet, (batch, 1), generator=generator)
        other = (symbol - 1 + step) % self.alphabet + 1
        string = repeat(symbol, "batch 1 -> batch length", length=length)
        return torch.cat([symbol, other, string], dim=1)

    def prompt(self, symbols: Symbols) -> Prompt:
        if self.form != "replace":
            return super().prompt(symbols)
        old, new, string = symbols[:, :1], symbols[:, 1:2], symbols[:, 2:]
        words = [torch.full_like(old, self.special(number)) for number in range(4)]
        return torch.cat([words[0], old, words[1], new, words[2], string, words[3]], dim=1)

    def reply(self, prompt: Prompt) -> Reply:
        if self.form == "replace":
            return repeat(
                prompt[:, 3], "batch -> batch length", length=self.times * (prompt.shape[1] - 6)
            )
        string = prompt[:, 1:-1]
        if self.divided:
            return torch.cat([F.pad(string, (0, 1), value=self.divider), string], dim=1)
        return repeat(string, "batch symbol -> batch (times symbol)", times=self.times)

    def copied(self, length: int) -> Copied | None:
        if self.form == "replace":
            return torch.full((self.times * (length - 6),), 3)
        return torch.arange(1, length - 1) if (self.form, self.times) == ("random", 1) else None

    def measure_floors(self, length: int) -> Floors:
        """The bag gives the one symbol away; of two that are equally frequent it gives one."""
        symbols = self.times * length
        of_bag = {
            "random": symbols * share_of_commonest(length, self.alphabet),
            "one_symbol": float(symbols),
            "replace": symbols / 2 if self.times == 1 else float(symbols),
        }
        return self.floors_of(symbols, of_bag[self.form])
