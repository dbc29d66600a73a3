"""Tasks with one answer a sequence, and the place where it is read."""

from abc import abstractmethod
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from studies.tasks._empties import with_empties, without_empties
from studies.tasks.task import Batch, Targets, Task, check_choice, whole

Place = Literal["first", "last", "mean", "prepended", "appended"]

AROUND: dict[str, tuple[int, int]] = {"prepended": (1, 0), "appended": (0, 1)}
"""How many empty tokens a place puts before and after the symbols."""

READOUTS = {"prepended": "first", "appended": "last"}


class OneAnswer(Task):
    """A task with one answer a sequence, read at a place of choice.

    `answer_at` is "first" or "last" for that symbol itself, "mean" for the mean over all symbols,
    "prepended" for an empty token before the sequence (a CLS token), "appended" for one behind it
    (as in arXiv:2305.16843). The place can turn a conclusion round: a read-out at the last symbol
    has only the first to find, at a fixed index; behind or before the sequence it has to find an
    end that moves with the length.
    """

    def __init__(self, answer_at: Place) -> None:
        check_choice(self.name, "answer_at", answer_at, get_args(Place))
        self.answer_at: Place = answer_at
        self.readout = READOUTS.get(answer_at, answer_at)

    @property
    @abstractmethod
    def n_symbols(self) -> int:
        """The number of symbols, which have the ids 1..n_symbols."""

    @abstractmethod
    def draw(
        self, generator: torch.Generator, batch: int, length: int
    ) -> tuple[Int[Tensor, "batch symbol"], Int[Tensor, " batch"]]:
        """Draw questions and their answers."""

    @abstractmethod
    def answer(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, " batch"]:
        """The exact answers to questions."""

    def needs(self, symbols: Int[Tensor, "batch symbol"]) -> Bool[Tensor, "batch symbol"] | None:
        """Which symbols each answer needs; None where it hangs on all of them."""
        return None

    @property
    def empty(self) -> int:
        """The id of the empty token, for the places that have one."""
        return self.n_symbols + 1

    @property
    def vocab_size(self) -> int:
        return self.n_symbols + 1 + (self.answer_at in AROUND)

    def seq(self, length: int) -> int:
        return length + sum(AROUND.get(self.answer_at, (0, 0)))

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        self.check_length(length)
        symbols, answers = self.draw(generator, batch, length)
        return whole(self.pose(symbols), answers)

    def pose(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch seq"]:
        before, after = AROUND.get(self.answer_at, (0, 0))
        return with_empties(symbols, self.empty, before, after)

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Targets:
        return self.answer(self._symbols(tokens))

    def links(self, tokens: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch query key"] | None:
        needed = self.needs(self._symbols(tokens))
        if needed is None or self.readout == "mean":
            return None
        batch, seq = tokens.shape
        links = torch.zeros(batch, seq, seq, dtype=torch.bool, device=tokens.device)
        query = 0 if self.readout == "first" else seq - 1
        links[:, query] = F.pad(needed, AROUND.get(self.answer_at, (0, 0)))
        return links

    def spell(self, token: int) -> str:
        return "_" if token == self.empty else str(token)

    def _symbols(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, "batch symbol"]:
        return without_empties(tokens, self.empty) if self.answer_at in AROUND else tokens


def both_ends(symbols: Int[Tensor, "batch symbol"]) -> Bool[Tensor, "batch symbol"]:
    """The first and the last symbol."""
    ends = torch.zeros_like(symbols, dtype=torch.bool)
    ends[:, 0] = ends[:, -1] = True
    return ends
