"""Tasks whose answer is a string, in place of the symbols or at empty tokens behind them."""

from abc import abstractmethod
from typing import Literal, get_args

import torch
from einops import repeat
from jaxtyping import Bool, Int
from torch import Tensor

from studies.tasks._empties import at_empties, with_empties, without_empties
from studies.tasks.task import Batch, Targets, Task, check_choice, whole

StringPlace = Literal["in_place", "appended"]


class AnswerString(Task):
    """A task whose answer is a string of classes.

    `answer_at` is "in_place" for answer i at symbol i, or "appended" for answers at as many
    identical empty tokens behind the symbols (as in arXiv:2305.16843): nothing tells these tokens
    apart but their positions.
    """

    readout = "tokens"

    def __init__(self, answer_at: StringPlace = "appended") -> None:
        check_choice(self.name, "answer_at", answer_at, get_args(StringPlace))
        self.answer_at: StringPlace = answer_at

    @property
    @abstractmethod
    def n_symbols(self) -> int:
        """The number of symbols, which have the ids 1..n_symbols."""

    @abstractmethod
    def draw(
        self, generator: torch.Generator, batch: int, length: int
    ) -> Int[Tensor, "batch symbol"]:
        """Draw questions."""

    @abstractmethod
    def answer(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch output"]:
        """The exact answers to questions, -100 behind the end of a string."""

    def outputs(self, length: int) -> int:
        """How many answers a question of this length has."""
        return length

    def copied(self, length: int) -> Int[Tensor, " output"] | None:
        """The index of the symbol that each answer repeats; None where it is no fixed one."""
        return None

    @property
    def empty(self) -> int:
        """The id of the empty token."""
        return self.n_symbols + 1

    @property
    def vocab_size(self) -> int:
        return self.n_symbols + 1 + (self.answer_at == "appended")

    def seq(self, length: int) -> int:
        return length + (self.outputs(length) if self.answer_at == "appended" else 0)

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        self.check_length(length)
        tokens = self.pose(self.draw(generator, batch, length))
        return whole(tokens, self.solve(tokens))

    def pose(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch seq"]:
        if self.answer_at == "in_place":
            return symbols
        return with_empties(symbols, self.empty, after=self.outputs(symbols.shape[1]))

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Targets:
        if self.answer_at == "in_place":
            return self.answer(tokens)
        answers = self.answer(without_empties(tokens, self.empty))
        return at_empties(tokens, answers, self.empty)

    def links(self, tokens: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch query key"] | None:
        appended = self.answer_at == "appended"
        symbols = without_empties(tokens, self.empty) if appended else tokens
        length, seq = symbols.shape[1], tokens.shape[1]
        copied = self.copied(length)
        if copied is None:
            return None
        links = torch.zeros(seq, seq, dtype=torch.bool, device=tokens.device)
        query = torch.arange(len(copied), device=tokens.device) + (length if appended else 0)
        links[query, copied.to(tokens.device)] = True
        return repeat(links, "query key -> batch query key", batch=len(tokens))

    def spell(self, token: int) -> str:
        return "_" if token == self.empty else str(token)
