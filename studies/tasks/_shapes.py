"""Shapes that tasks share: a lookup, one answer a sequence, a string of answers, a running text."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, get_args

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Int
from torch import Generator, Tensor
from torch.nn import functional as F

from studies.tasks._floors import UNSCORED, share_of_commonest
from studies.tasks.task import (
    Floors,
    Links,
    Symbols,
    Targets,
    Task,
    Tokens,
    check_choice,
    check_least,
)

Answers = Int[Tensor, " batch"]
Outputs = Int[Tensor, "batch output"]
Needed = Bool[Tensor, "batch symbol"]
Source = tuple[Tokens, Bool[Tensor, "batch seq"]]
Copied = Int[Tensor, " output"]
Prompt = Int[Tensor, "batch prompt"]
Reply = Int[Tensor, "batch reply"]


def uniform_floors(length: int, alphabet: int) -> Floors:
    """Every answer is a uniform symbol; of a bag, its commonest symbol is the best guess."""
    return Floors(1 / alphabet, 1 / alphabet, share_of_commonest(length, alphabet))


def links_of_copies(tokens: Tokens, first: int, copied: Copied) -> Links:
    """Links of the queries from `first` on to one key each, the same in every sequence."""
    seq = tokens.shape[1]
    links = torch.zeros(seq, seq, dtype=torch.bool, device=tokens.device)
    links[first + torch.arange(len(copied)), copied] = True
    return repeat(links, "query key -> batch query key", batch=len(tokens))


def to_one_key(key: Int[Tensor, "batch query"], linked: Bool[Tensor, "batch query"]) -> Links:
    """Links of the linked queries to one key each."""
    keys = torch.arange(key.shape[1], device=key.device)
    return (rearrange(key, "batch query -> batch query 1") == keys) & rearrange(
        linked, "batch query -> batch query 1"
    )


class Lookup(Task):
    """A task whose answer at a position is a token of the same sequence.

    The id of class 0 is `first_answer`.
    """

    readout = "tokens"
    first_answer: int = 1

    @abstractmethod
    def source(self, tokens: Tokens) -> Source:
        """The index of the token that each position asks for, and whether it asks for one."""

    def solve(self, tokens: Tokens) -> Tokens:
        source, scored = self.source(tokens)
        return (tokens.gather(1, source) - self.first_answer).masked_fill(~scored, UNSCORED)

    def links(self, tokens: Tokens) -> Links:
        return to_one_key(*self.source(tokens))


class Surrounded(Task):
    """A task that puts identical empty tokens around its symbols, where it answers at these.

    `words` spell the symbols in the order of their ids; a symbol without a word is a number.
    """

    words: Sequence[str] = ()

    @abstractmethod
    def empties(self, length: int) -> tuple[int, int]:
        """How many empty tokens stand before and behind so many symbols."""

    @property
    def empty(self) -> int:
        """The id of the empty token, where there is one."""
        return self.n_symbols + 1

    @property
    def vocab_size(self) -> int:
        return self.n_symbols + 1 + any(self.empties(self.min_length))

    def seq(self, length: int) -> int:
        return length + sum(self.empties(length))

    def pose(self, symbols: Symbols) -> Tokens:
        return F.pad(symbols, self.empties(symbols.shape[1]), value=self.empty)

    def symbols(self, tokens: Tokens) -> Symbols:
        """The symbols in their order, wherever the empty tokens are; each row has equally many."""
        kept = tokens[tokens != self.empty]
        return rearrange(kept, "(batch symbol) -> batch symbol", batch=len(tokens))

    def spell(self, token: int) -> str:
        if token == self.empty:
            return "_"
        return self.words[token - 1] if token <= len(self.words) else str(token)


Place = Literal["first", "last", "mean", "prepended", "appended"]


class OneAnswer(Surrounded):
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
        self.readout = {"prepended": "first", "appended": "last"}.get(answer_at, answer_at)

    @abstractmethod
    def answer(self, symbols: Symbols) -> Answers:
        """The exact answers to questions."""

    def needs(self, symbols: Symbols) -> Needed | None:
        """Which symbols each answer needs; None where it hangs on all of them."""
        return None

    def empties(self, length: int) -> tuple[int, int]:
        return int(self.answer_at == "prepended"), int(self.answer_at == "appended")

    def solve(self, tokens: Tokens) -> Targets:
        return self.answer(self.symbols(tokens))

    def links(self, tokens: Tokens) -> Links | None:
        needed = self.needs(self.symbols(tokens))
        if needed is None or self.readout == "mean":
            return None
        links = torch.zeros(*tokens.shape, tokens.shape[1], dtype=torch.bool, device=tokens.device)
        links[:, 0 if self.readout == "first" else -1] = F.pad(needed, self.empties(0))
        return links


def both_ends(symbols: Symbols) -> Needed:
    """The first and the last symbol."""
    ends = torch.zeros_like(symbols, dtype=torch.bool)
    ends[:, 0] = ends[:, -1] = True
    return ends


StringPlace = Literal["in_place", "appended"]


class AnswerString(Surrounded):
    """A task whose answer is a string of classes.

    `answer_at` is "in_place" for answer i at symbol i, or "appended" for answers at as many
    identical empty tokens behind the symbols (as in arXiv:2305.16843): nothing tells these tokens
    apart but their positions.
    """

    readout = "tokens"
    answer_at: StringPlace = "appended"

    @abstractmethod
    def answer(self, symbols: Symbols) -> Outputs:
        """The exact answers to questions, -100 behind the end of a string."""

    def outputs(self, length: int) -> int:
        """How many answers a question of this length has."""
        return length

    def copied(self, length: int) -> Copied | None:
        """The index of the symbol that each answer repeats; None where it is no fixed one."""
        return None

    def empties(self, length: int) -> tuple[int, int]:
        return (0, self.outputs(length) if self.answer_at == "appended" else 0)

    def solve(self, tokens: Tokens) -> Targets:
        answers = self.answer(self.symbols(tokens))
        if self.answer_at == "in_place":
            return answers
        targets = tokens.new_full(tokens.shape, UNSCORED)
        targets[tokens == self.empty] = rearrange(answers, "batch output -> (batch output)")
        return targets

    def links(self, tokens: Tokens) -> Links | None:
        length = self.symbols(tokens).shape[1]
        copied = self.copied(length)
        first = length if self.answer_at == "appended" else 0
        return None if copied is None else links_of_copies(tokens, first, copied)

    def examples(self, length: int, most: int, symbols: int) -> tuple[Symbols, Outputs]:
        """Fixed questions with their answers, for floors that are counted; at most so many."""
        generator = torch.Generator().manual_seed(0)
        drawn = self.draw(generator, min(most, symbols // length), length)
        return drawn, self.answer(drawn)


STOP = 2
"""The class that ends a string of bits."""


def stopped(answers: Outputs, sizes: Int[Tensor, "batch 1"]) -> Outputs:
    """Strings of bits that end with a stop after so many; what follows it is unscored."""
    output = torch.arange(answers.shape[1], device=answers.device)
    return answers.where(output < sizes, STOP).masked_fill(output > sizes, UNSCORED)


class UniformString(AnswerString):
    """A task whose questions are independent uniform symbols, and its answers such symbols."""

    def __init__(self, alphabet: int, answer_at: StringPlace = "appended") -> None:
        check_least(self.name, 2, alphabet=alphabet)
        check_choice(self.name, "answer_at", answer_at, get_args(StringPlace))
        self.alphabet = self.n_symbols = self.n_classes = alphabet
        self.answer_at = answer_at

    def measure_floors(self, length: int) -> Floors:
        return uniform_floors(length, self.alphabet)


class Transcript(Task):
    """A prompt and the reply to it, for a model under a causal mask.

    The tokens are the prompt, which ends with a separator, and the reply. From the separator on,
    each position predicts the next symbol of the reply, the last one its end. All of a reply is
    right with the true symbols before each answer exactly where it is right when a model writes it
    greedily by itself, so exact match is that of greedy decoding.

    Ids and classes: symbol s of 1..alphabet is class s - 1. Where a reply has two parts (`divided`)
    a divider comes next, then the end, which is a class but never a token; other tokens of the
    prompt follow. `specials` spell these; the last one is the separator.
    """

    readout = "tokens"
    causal: ClassVar[bool] = True
    divided: bool = False
    specials: Sequence[str]

    def __init__(self, alphabet: int) -> None:
        check_least(self.name, 2, alphabet=alphabet)
        self.alphabet = self.n_symbols = alphabet
        self.divider = alphabet + 1

    def prompt(self, symbols: Symbols) -> Prompt:
        """The prompt that asks about these symbols, with the separator."""
        started = F.pad(symbols, (1, 0), value=self.special(0))
        return F.pad(started, (0, 1), value=self.special(-1))

    @abstractmethod
    def reply(self, prompt: Prompt) -> Reply:
        """The tokens of the reply, without its end."""

    def copied(self, length: int) -> Copied | None:
        """The index in a prompt of `length` tokens that each answer repeats, if it is the one."""
        return None

    @property
    def n_classes(self) -> int:
        return self.alphabet + self.divided + 1

    def special(self, number: int) -> int:
        """The id of one of the `specials`."""
        return self.alphabet + self.divided + 1 + number % len(self.specials)

    @property
    def vocab_size(self) -> int:
        return self.special(-1) + 1

    def seq(self, length: int) -> int:
        return self.pose(self.draw(Generator(), 1, length)).shape[1]

    def pose(self, symbols: Symbols) -> Tokens:
        prompt = self.prompt(symbols)
        return torch.cat([prompt, self.reply(prompt)], dim=1)

    def solve(self, tokens: Tokens) -> Tokens:
        separator = self._separator(tokens)
        answers = self.reply(tokens[:, : separator + 1]) - 1
        unscored = F.pad(answers, (separator, 0), value=UNSCORED)
        return F.pad(unscored, (0, 1), value=self.n_classes - 1)

    def links(self, tokens: Tokens) -> Links | None:
        separator = self._separator(tokens)
        copied = self.copied(separator + 1)
        return None if copied is None else links_of_copies(tokens, separator, copied)

    def spell(self, token: int) -> str:
        if token <= self.alphabet:
            return str(token)
        if self.divided and token == self.divider:
            return "|"
        return self.specials[token - self.special(0)]

    def _separator(self, tokens: Tokens) -> int:
        return int((tokens[0] == self.special(-1)).nonzero()[0])

    def floors_of(self, symbols: int, of_bag: float) -> Floors:
        """The floors of a reply with so many symbols, each uniform on the alphabet.

        The end, and a divider, come once in each reply and at a known index. `of_bag` is the number
        of symbols that the best guess from the bag gets right.
        """
        once = 1 + self.divided
        guessed, total = symbols / self.alphabet, symbols + once
        return Floors(max(guessed, 1) / total, (guessed + once) / total, max(of_bag, 1) / total)
