"""Tasks written as one text: each symbol of the reply is predicted from what precedes it."""

from abc import abstractmethod
from typing import ClassVar

import torch
from einops import repeat
from jaxtyping import Bool, Int
from torch import Tensor

from studies.tasks._estimates import UNSCORED
from studies.tasks.task import Batch, Floors, Task, whole


class Transcript(Task):
    """A prompt and the reply to it, for a model under a causal mask.

    The tokens are the prompt, which ends with a separator, and the reply. From the separator on,
    each position predicts the next symbol of the reply, the last one its end. All of a reply is
    right with the true symbols before each answer exactly where it is right when a model writes it
    greedily by itself, so exact match is that of greedy decoding.

    Ids and classes: symbol s of 1..alphabet is class s - 1. Where a reply has two parts, a divider
    comes next, then the end, which is a class but never a token; other tokens of the prompt follow.
    """

    readout = "tokens"
    causal: ClassVar[bool] = True

    def __init__(self, alphabet: int) -> None:
        self.alphabet = alphabet

    @property
    def divided(self) -> bool:
        """Has a reply two parts, with a divider between them?"""
        return False

    @property
    @abstractmethod
    def specials(self) -> tuple[str, ...]:
        """How the other tokens of the prompt are spelled; the last one is the separator."""

    @abstractmethod
    def draw(
        self, generator: torch.Generator, batch: int, length: int
    ) -> Int[Tensor, "batch symbol"]:
        """Draw the symbols of questions."""

    @abstractmethod
    def prompt(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch prompt"]:
        """The prompt that asks about these symbols, with the separator."""

    @abstractmethod
    def reply(self, prompt: Int[Tensor, "batch prompt"]) -> Int[Tensor, "batch reply"]:
        """The tokens of the reply, without its end."""

    def copied(self, length: int) -> Int[Tensor, " reply"] | None:
        """The index in a prompt of `length` tokens that each answer repeats, if it is the one."""
        return None

    @property
    def n_classes(self) -> int:
        return self.alphabet + self.divided + 1

    @property
    def divider(self) -> int:
        """The id of the divider, for replies of two parts."""
        return self.alphabet + 1

    def special(self, number: int) -> int:
        """The id of one of the `specials`."""
        return self.alphabet + self.divided + 1 + number % len(self.specials)

    @property
    def vocab_size(self) -> int:
        return self.special(-1) + 1

    def seq(self, length: int) -> int:
        return self.pose(self.draw(torch.Generator(), 1, length)).shape[1]

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        self.check_length(length)
        tokens = self.pose(self.draw(generator, batch, length))
        return whole(tokens, self.solve(tokens))

    def pose(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch seq"]:
        prompt = self.prompt(symbols)
        return torch.cat([prompt, self.reply(prompt)], dim=1)

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, "batch seq"]:
        prompt = self._prompt(tokens)
        answers = self.reply(prompt) - 1
        unscored = tokens.new_full((len(tokens), prompt.shape[1] - 1), UNSCORED)
        end = tokens.new_full((len(tokens), 1), self.n_classes - 1)
        return torch.cat([unscored, answers, end], dim=1)

    def links(self, tokens: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch query key"] | None:
        separator, seq = self._prompt(tokens).shape[1] - 1, tokens.shape[1]
        copied = self.copied(separator + 1)
        if copied is None:
            return None
        links = torch.zeros(seq, seq, dtype=torch.bool, device=tokens.device)
        links[separator + torch.arange(len(copied)), copied] = True
        return repeat(links, "query key -> batch query key", batch=len(tokens))

    def spell(self, token: int) -> str:
        if token <= self.alphabet:
            return str(token)
        return (
            "|"
            if token == self.divider and self.divided
            else self.specials[token - self.special(0)]
        )

    def _prompt(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, "batch prompt"]:
        separator = int((tokens[0] == self.special(-1)).nonzero()[0])
        return tokens[:, : separator + 1]

    def floors_of(self, symbols: int, of_bag: float) -> Floors:
        """The floors of a reply with so many symbols, each uniform on the alphabet.

        The end, and a divider, come once in each reply and at a known index. `of_bag` is the number
        of symbols that the best guess from the bag gets right.
        """
        once = 1 + self.divided
        guessed, total = symbols / self.alphabet, symbols + once
        return Floors(max(guessed, 1) / total, (guessed + once) / total, max(of_bag, 1) / total)
