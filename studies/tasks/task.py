"""The contract of a task: inputs with exact answers, and what a blind guesser would score."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

from studies.tasks._floors import (
    UNSCORED,
    Certificate,
    Floors,
    all_together,
    answers_of_rearrangements,
    by_output,
    score_of_choice,
)

Targets = Int[Tensor, " batch"] | Int[Tensor, "batch seq"] | Int[Tensor, "batch seq answers"]


@dataclass(frozen=True)
class Batch:
    """Sequences with their answers.

    `tokens` are ids from 1 on (0 is padding). `targets` are class ids from 0 on, one a position (or
    several, where a task asks for several) or one a sequence, and -100 where nothing is scored.
    `keep` is True where a token is real.
    """

    tokens: Int[Tensor, "batch seq"]
    targets: Targets
    keep: Bool[Tensor, "batch seq"]


class Task(ABC):
    """A problem on token sequences, with exact answers.

    The constructor takes the task's own options, with defaults and annotations; a config accepts
    exactly these. Each option is kept as an attribute of the same name.

    Attributes: `name`; `readout`, which is "tokens" for an answer a position, or "last", "first" or
    "mean" for one answer a sequence; `difficulty`, the options, and "length", along which the task
    gets harder; `pad_id`, which is never an input symbol; `causal`, which is True where the tokens
    go on with the answers, as in language modelling, so that a model must not look ahead.
    """

    name: ClassVar[str]
    readout: str
    difficulty: ClassVar[tuple[str, ...]]
    pad_id: ClassVar[int] = 0
    causal: ClassVar[bool] = False

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """The number of token ids, padding included."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """The number of answers to choose from."""

    @property
    def answers(self) -> int:
        """How many answers a place has; a model gives `answers * n_classes` logits there."""
        return 1

    @property
    def min_length(self) -> int:
        """The shortest length at which something can be scored."""
        return 1

    @property
    def max_length(self) -> int | None:
        """The longest length that there is, or None."""
        return None

    @abstractmethod
    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        """Draw sequences and their answers; all randomness comes from the generator (on the CPU).

        `length` counts the symbols of the question; where a task adds empty tokens or the answers
        themselves, the sequences are longer.

        Raises:
            ValueError: If the length is below `min_length` or above `max_length`.
        """

    @abstractmethod
    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Targets:
        """The exact answers, -100 where unscored."""

    def seq(self, length: int) -> int:
        """How many tokens a sequence with so many symbols has."""
        return length

    def links(self, tokens: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch query key"] | None:
        """The tokens that the answers need: True where the one at `query` needs that at `key`.

        Given the tokens that an answer needs, and that it needs these, no other token matters to
        it. Rows of unscored queries are empty. None where the task cannot say: where all tokens
        matter (parity), or where it is known for no single place of reading.
        """
        return None

    def pose(self, symbols: Int[Tensor, "batch symbol"]) -> Int[Tensor, "batch seq"]:
        """A question as a model sees it: its symbols, and what the task puts around them."""
        return symbols

    def spell(self, token: int) -> str:
        """A token as text."""
        return str(token)

    def show(self, symbols: Sequence[int]) -> str:
        """A question written down by hand, with its answers below; a dot is unscored."""
        return shown(self, symbols)

    def floors(self, length: int) -> Floors:
        """What predictors that see almost nothing score at this length; the same at every call.

        Raises:
            ValueError: If the length is below `min_length` or above `max_length`.
        """
        self.check_length(length)
        known = self._known_floors
        key = repr(self), length
        if key not in known:
            known[key] = self.measure_floors(length)
        return known[key]

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
        constant, index = (
            score_of_choice(arrange(chosen), arrange(scored), self.n_classes)
            for arrange in (all_together, by_output)
        )
        bags = self.sample(generator, max(16, 16_384 // length), length)
        halves = answers_of_rearrangements(self.solve, bags.tokens, bags.keep, generator)
        bag = score_of_choice(*halves, self.n_classes)
        # A constant is also a choice for every index and for every bag.
        return Floors(constant, max(constant, index), max(constant, bag))

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
            raise ValueError(
                f"the shortest sequences of {self!r} have length {self.min_length}; "
                f"got length={length}; ask for {self.min_length} or more"
            )
        if self.max_length is not None and length > self.max_length:
            raise ValueError(
                f"the longest sequences of {self!r} have length {self.max_length}; "
                f"got length={length}; ask for {self.max_length} or less"
            )

    @cached_property
    def _known_floors(self) -> dict[tuple[str, int], Floors]:
        return {}

    def __repr__(self) -> str:
        options = list(inspect.signature(type(self)).parameters)
        shown = ", ".join(f"{option}={getattr(self, option)!r}" for option in options)
        return f"{self.name}({shown})"


def uniform_tokens(
    generator: torch.Generator, batch: int, length: int, alphabet: int
) -> Int[Tensor, "batch seq"]:
    """Independent tokens, each uniform on 1..alphabet."""
    return torch.randint(1, alphabet + 1, (batch, length), generator=generator)


def whole(tokens: Int[Tensor, "batch seq"], targets: Targets) -> Batch:
    """A batch without padding."""
    return Batch(tokens, targets, torch.ones_like(tokens, dtype=torch.bool))


def check_alphabet(name: str, alphabet: int, option: str = "alphabet") -> None:
    """Refuse an alphabet, or what else an option calls it, with nothing to tell apart."""
    if alphabet < 2:
        raise ValueError(
            f"{name} needs symbols to tell apart, so {option} must be at least 2; "
            f"got {option}={alphabet}; ask for 2 or more"
        )


def check_choice(name: str, option: str, value: object, allowed: Sequence[object]) -> None:
    """Refuse a value that is none of those that an option has."""
    if value not in allowed:
        listed = ", ".join(map(str, allowed))
        raise ValueError(f"{name} has {option} among {listed}; got {option}={value!r}")


def to_one_key(
    key: Int[Tensor, "batch query"], linked: Bool[Tensor, "batch query"]
) -> Bool[Tensor, "batch query key"]:
    """Links of the linked queries to one key each."""
    keys = torch.arange(key.shape[1], device=key.device)
    return (rearrange(key, "batch query -> batch query 1") == keys) & rearrange(
        linked, "batch query -> batch query 1"
    )


def shown(task: "Task", symbols: Sequence[int]) -> str:
    """The tokens of a question in one line, its targets below them in columns."""
    tokens = task.pose(torch.tensor([list(symbols)]))
    targets = task.solve(tokens)
    spelled = [task.spell(token) for token in tokens[0].tolist()]
    if targets.ndim == 1:
        return f"tokens   {' '.join(spelled)}\nanswer   {_target(targets.item())}"
    lines = rearrange(targets[0], "seq ... -> (...) seq").tolist()
    rows = [spelled, *([_target(target) for target in line] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{title}  {' '.join(map(str.rjust, row, widths))}".rstrip()
        for title, row in zip(["tokens ", *["targets"] * len(lines)], rows, strict=True)
    )


def _target(label: int | float) -> str:
    return "." if label == UNSCORED else str(label)
