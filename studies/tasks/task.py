"""The contract of a task: inputs with exact answers, and what a blind guesser would score."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from studies.tasks._floors import (
    UNSCORED,
    Certificate,
    Floors,
    answers_of_rearrangements,
    constant_and_index,
    score_of_choice,
)

Symbols = Int[Tensor, "batch symbol"]
Tokens = Int[Tensor, "batch seq"]
Targets = Int[Tensor, " batch"] | Tokens | Int[Tensor, "batch seq answers"]
Links = Bool[Tensor, "batch query key"]


@dataclass(frozen=True)
class Batch:
    """Sequences with their answers.

    `tokens` are ids from 1 on (0 is padding). `targets` are class ids from 0 on, one a position (or
    several, where a task asks for several) or one a sequence, and -100 where nothing is scored.
    `keep` is True where a token is real.
    """

    tokens: Tokens
    targets: Targets
    keep: Bool[Tensor, "batch seq"]


class Task(ABC):
    """A problem on token sequences, with exact answers.

    The constructor takes the task's own options, with defaults and annotations; a config accepts
    exactly these. Each option is kept as an attribute of the same name; a value that makes no
    sense is refused with a ValueError. A task defines `draw`, or `sample` itself, and `solve`.

    These may be properties, where they follow from the options:

    Attributes:
        name: As in a config.
        readout: "tokens" for an answer a position; "last", "first" or "mean" for one a sequence.
        n_symbols: Questions are made of the ids 1..n_symbols.
        n_classes: The number of answers to choose from.
        answers: How many answers a place has; a model gives `answers * n_classes` logits there.
        min_length: The shortest length at which something can be scored.
        max_length: The longest length that there is, or None.
        difficulty: Along what the task gets harder: its options and "length", unless it says so.
        pad_id: Never an input symbol.
        causal: True where the tokens go on with the answers, as in language modelling, so that a
            model must not look ahead.
    """

    name: ClassVar[str]
    readout: str
    n_symbols: int
    n_classes: int
    answers: int = 1
    min_length: int = 1
    max_length: int | None = None
    difficulty: ClassVar[tuple[str, ...]]
    pad_id: ClassVar[int] = 0
    causal: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "difficulty" not in vars(cls):
            cls.difficulty = (*inspect.signature(cls).parameters, "length")

    @property
    def vocab_size(self) -> int:
        """The number of token ids, padding included."""
        return self.n_symbols + 1

    def draw(self, generator: Generator, batch: int, length: int) -> Symbols:
        """Draw the symbols of questions; by default independent uniform ones."""
        return uniform_tokens(generator, batch, length, self.n_symbols)

    def pose(self, symbols: Symbols) -> Tokens:
        """A question as a model sees it: its symbols, and what the task puts around them."""
        return symbols

    def sample(self, generator: Generator, batch: int, length: int) -> Batch:
        """Draw sequences and their answers; all randomness comes from the generator (on the CPU).

        `length` counts the symbols of the question; where a task adds empty tokens or the answers
        themselves, the sequences are longer.

        Raises:
            ValueError: If the length is below `min_length` or above `max_length`.
        """
        self.check_length(length)
        tokens = self.pose(self.draw(generator, batch, length))
        return Batch(tokens, self.solve(tokens), torch.ones_like(tokens, dtype=torch.bool))

    @abstractmethod
    def solve(self, tokens: Tokens) -> Targets:
        """The exact answers, -100 where unscored."""

    def seq(self, length: int) -> int:
        """How many tokens a sequence with so many symbols has."""
        return length

    def links(self, tokens: Tokens) -> Links | None:
        """The tokens that the answers need: True where the one at `query` needs that at `key`.

        Given the tokens that an answer needs, and that it needs these, no other token matters to
        it. Rows of unscored queries are empty. None where the task cannot say: where all tokens
        matter (parity), or where it is known for no single place of reading.
        """
        return None

    def spell(self, token: int) -> str:
        """A token as text."""
        return str(token)

    def show(self, symbols: Sequence[int]) -> str:
        """A question written down by hand, with its answers below; a dot is unscored."""
        tokens = self.pose(torch.tensor([list(symbols)]))
        targets = self.solve(tokens)
        spelled = [self.spell(token) for token in tokens[0].tolist()]
        if targets.ndim == 1:
            return f"tokens   {' '.join(spelled)}\nanswer   {_written(targets.item())}"
        lines = rearrange(targets[0], "seq ... -> (...) seq").tolist()
        rows = [spelled, *([_written(target) for target in line] for line in lines)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            f"{title}  {' '.join(map(str.rjust, row, widths))}".rstrip()
            for title, row in zip(["tokens ", *["targets"] * len(lines)], rows, strict=True)
        )

    def floors(self, length: int) -> Floors:
        """What predictors that see almost nothing score at this length; the same at every call.

        Raises:
            ValueError: If the length is below `min_length` or above `max_length`.
        """
        self.check_length(length)
        key = repr(self), length
        if key not in self._known_floors:
            self._known_floors[key] = self.measure_floors(length)
        return self._known_floors[key]

    def measure_floors(self, length: int) -> Floors:
        """Estimate the floors by sampling; a task that knows them exactly overrides this.

        The classes of `constant` and `index` are chosen on one sample and scored on another.
        `bag` rearranges the tokens within each sequence, chooses the class of each bag on half of
        the rearrangements and scores it on the other half. That supposes exchangeable tokens:
        every order of a bag is equally likely. A task whose sampling prefers some orders has to
        override this. An estimate lies below the truth rather than above it, since a class chosen
        on a sample is at best the best one.
        """
        generator = torch.Generator().manual_seed(0)
        chosen, scored = (self.sample(generator, 1024, length).targets for _ in range(2))
        constant, index = constant_and_index(chosen, scored, self.n_classes)
        bags = self.sample(generator, max(16, 16_384 // length), length)
        halves = answers_of_rearrangements(self.solve, bags.tokens, bags.keep, generator)
        bag = score_of_choice(*halves, self.n_classes)
        return Floors(constant, index, max(constant, bag))

    def certify(self, length: int, seed: int = 0, examples: int = 2048) -> Certificate:
        """Measure one length: solver, balance of the classes, floors."""
        drawn = self.sample(torch.Generator().manual_seed(seed), examples, length)
        solved, targets = self.solve(drawn.tokens), drawn.targets
        scored = targets != UNSCORED
        compared = scored | (solved != UNSCORED)
        shares = torch.bincount(targets[scored], minlength=self.n_classes) / scored.sum()
        return Certificate(
            length=length,
            solver_accuracy=(solved == targets)[compared].double().mean().item(),
            class_shares=tuple(shares.tolist()),
            floors=self.floors(length),
            scored_share=scored.double().mean().item(),
        )

    def check_length(self, length: int) -> None:
        """Refuse a length at which the task has no answers."""
        if length < self.min_length:
            end, limit, side = "shortest", self.min_length, "more"
        elif self.max_length is not None and length > self.max_length:
            end, limit, side = "longest", self.max_length, "less"
        else:
            return
        raise ValueError(
            f"the {end} sequences of {self!r} have length {limit}; "
            f"got length={length}; ask for {limit} or {side}"
        )

    @cached_property
    def _known_floors(self) -> dict[tuple[str, int], Floors]:
        return {}

    def __repr__(self) -> str:
        return with_options(self)


def with_options(part: Any) -> str:
    """A task or probe as text: its name with its options."""
    options = inspect.signature(type(part)).parameters
    return f"{part.name}({', '.join(f'{option}={getattr(part, option)!r}' for option in options)})"


def _written(label: int | float) -> str:
    return "." if label == UNSCORED else str(label)


def uniform_tokens(generator: Generator, batch: int, length: int, alphabet: int) -> Tokens:
    """Independent tokens, each uniform on 1..alphabet."""
    return torch.randint(1, alphabet + 1, (batch, length), generator=generator)


def check_least(name: str, least: int, **options: int) -> None:
    """Refuse options below their least value, such as an alphabet with nothing to tell apart."""
    for option, value in options.items():
        if value < least:
            raise ValueError(f"{name}: {option} must be at least {least}; got {option}={value}")


def check_choice(name: str, option: str, value: object, allowed: Sequence[object]) -> None:
    """Refuse a value that is none of those that an option has."""
    if value not in allowed:
        listed = ", ".join(map(str, allowed))
        raise ValueError(f"{name} has {option} among {listed}; got {option}={value!r}")
