"""Shapes that tasks share: one answer a sequence, a string of answers, one running text."""

from abc import abstractmethod
from typing import ClassVar, Literal, get_args

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from studies.tasks._floors import UNSCORED, share_of_commonest
from studies.tasks.task import (
    Batch,
    Floors,
    Targets,
    Task,
    check_alphabet,
    check_choice,
    uniform_tokens,
    whole,
)


def with_empties(
    symbols: Int[Tensor, "batch symbol"], empty: int, before: int = 0, after: int = 0
) -> Int[Tensor, "batch seq"]:
    """The symbols with empty tokens around them."""
    return F.pad(symbols, (before, after), value=empty)


def without_empties(tokens: Int[Tensor, "batch seq"], empty: int) -> Int[Tensor, "batch symbol"]:
    """The symbols in their order, wherever the empty tokens are; each row has equally many."""
    return rearrange(tokens[tokens != empty], "(batch symbol) -> batch symbol", batch=len(tokens))


def at_empties(
    tokens: Int[Tensor, "batch seq"], answers: Int[Tensor, "batch output"], empty: int
) -> Int[Tensor, "batch seq"]:
    """Targets that hold the answers at the empty tokens, in their order."""
    targets = tokens.new_full(tokens.shape, UNSCORED)
    targets[tokens == empty] = rearrange(answers, "batch output -> (batch output)")
    return targets


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

    def draw(
        self, generator: torch.Generator, batch: int, length: int
    ) -> tuple[Int[Tensor, "batch symbol"], Int[Tensor, " batch"]]:
        """Draw questions and their answers; by default of independent uniform symbols."""
        symbols = uniform_tokens(generator, batch, length, self.n_symbols)
        return symbols, self.answer(symbols)

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

    def draw(
        self, generator: torch.Generator, batch: int, length: int
    ) -> Int[Tensor, "batch symbol"]:
        """Draw questions; by default of independent uniform symbols."""
        return uniform_tokens(generator, batch, length, self.n_symbols)

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


class UniformString(AnswerString):
    """A task whose questions are independent uniform symbols, and its answers such symbols."""

    def __init__(self, alphabet: int, answer_at: StringPlace = "appended") -> None:
        check_alphabet(self.name, alphabet)
        self.alphabet = alphabet
        super().__init__(answer_at)

    @property
    def n_symbols(self) -> int:
        return self.alphabet

    @property
    def n_classes(self) -> int:
        return self.alphabet

    def measure_floors(self, length: int) -> Floors:
        """Every output is a uniform symbol; of a bag, its commonest symbol is the best guess."""
        chance = 1 / self.alphabet
        return Floors(chance, chance, share_of_commonest(length, self.alphabet))


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
