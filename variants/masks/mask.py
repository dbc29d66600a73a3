"""The contract of masks, and their algebra."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import reduce
from math import lcm
from typing import Any, ClassVar, NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

from variants.masks import _diagrams
from variants.masks._cells import (
    Allowed,
    Cells,
    Device,
    Index,
    Repeats,
    Sizes,
    Texts,
    all_keep,
    checked,
    content,
    drawn,
)
from variants.masks._conversions import Forms
from variants.masks._diagrams import Node

CONVENTION = 2
"""The version of what masks mean here, kept with every run of a study.

It is raised whenever a mask could come to mean something else: what True says; which axes a tensor
of two, three or four axes has; what a query that may attend to nothing gets; where indices count
from under padding; which tokens `keep` calls real; what a mask of a given name and options allows.
"""

UNDECLARED = 512
"""How far a rule is followed at least that does not declare where it begins to repeat itself."""

AT_ONCE, AT_MOST = 2**20, 2**24
"""Cells that are looked at together, and in all; a mask that takes more counts as looking ahead."""

Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Mask(Forms):
    """Which keys each query may attend to: a boolean rule over (batch, head, query, key).

    **True means: may attend.** `scaled_dot_product_attention`, FlexAttention and Hugging Face's
    0/1 masks agree; `nn.MultiheadAttention` and `nn.TransformerEncoder` say the opposite.

    Masks are values. They combine with `&` (both allow), `|` (either allows) and `~` (does not
    allow), and are equal when their rules are the same combination up to the laws of that algebra.
    A query that may attend to nothing gets output 0, weights 0 and gradient 0.

    Indices are positions in the tensor, except where the mask pads on the left or packs documents:
    rules that count from the start of the text (`counts_real_tokens`) then count from the first
    real token, of each document for itself.

    A mask of your own extends this class and overrides `allows`, or is `Mask.from_rule(f)`.
    """

    name: ClassVar[str]
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Options with which conformance tries the mask, besides those that it finds by itself."""
    waives: ClassVar[Mapping[str, str]] = {}
    """Promises that the mask cannot keep, each with the reason."""
    counts_real_tokens: ClassVar[bool] = False
    """True: the rule depends on where the text starts, not only on distances."""
    unrestricted: ClassVar[bool] = False
    """True: the rule allows everything."""
    sees_later: bool = True
    """False: no query may attend to a later key, whatever the length."""

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        """May the query attend to the key? The four index tensors broadcast to one another."""
        raise NotImplementedError(f"{type(self).__qualname__} must override allows")

    @staticmethod
    def from_rule(rule: Rule) -> "Mask":
        """The mask of a function `rule(batch, head, query, key) -> bool tensor`."""
        return FromRule(rule)

    # The algebra

    def __and__(self, other: "Mask") -> "Mask":
        return _combined(Both, self, other) if isinstance(other, Mask) else NotImplemented

    def __or__(self, other: "Mask") -> "Mask":
        return _combined(Either, self, other) if isinstance(other, Mask) else NotImplemented

    def __invert__(self) -> "Mask":
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a mask is neither true nor false: combine masks with &, | and ~")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mask):
            return NotImplemented
        rules = _Numbered()
        return self is other or self._diagram(rules) == other._diagram(rules)

    def __hash__(self) -> int:
        return hash(frozenset(rule.key() for rule in _needed(self)))

    def __repr__(self) -> str:
        options = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({options})"

    def key(self) -> Hashable:
        """What tells this rule from others of its class; equal keys mean equal rules."""
        return tuple(map(content, vars(self).values()))

    def atoms(self) -> Iterator["Mask"]:
        """The rules that this mask combines."""
        yield self

    def conjuncts(self) -> Iterator["Mask"]:
        """The masks that must all allow what this mask allows."""
        yield self

    def _diagram(self, rules: "_Numbered") -> Node:
        """The mask as a function of its rules, which get their numbers there."""
        return True if self.unrestricted else _diagrams.variable(rules.number(self))

    # What a rule says of itself

    def holds(self) -> tuple[int, int]:
        """How many batch rows and heads the rule tells apart; 1 where all are alike."""
        return 1, 1

    def spans(self) -> tuple[int | None, int | None]:
        """How many queries and keys the rule is made for; None where any number will do."""
        return None, None

    def least_keys(self) -> int:
        """The fewest keys that the rule makes sense for."""
        return 0

    def needs_lengths(self) -> bool:
        """Does the rule read the number of queries or keys?"""
        return False

    def repeats(self) -> Repeats:
        """From where on the rule only repeats itself, so that looking on shows nothing new.

        A mask of your own that does not override this is looked at as far as its whole numbers
        suggest.
        """
        numbers = [n for n in vars(self).values() if isinstance(n, int) and n <= UNDECLARED]
        far = UNDECLARED + 2 * max([0, *numbers])
        return Repeats(start=far, reach=far)

    def fit(self, sizes: Sizes) -> None:
        """Check that the rule can answer for these sizes.

        Raises:
            ValueError: If it cannot, naming both sizes.
        """

    # Boolean tensors and rules, as attention takes them

    def dense(
        self, batch: int, heads: int, queries: int, keys: int, device: Device = None
    ) -> Allowed:
        """The mask as a boolean tensor of the smallest shape that broadcasts to those sizes.

        Raises:
            ValueError: If the mask does not fit the sizes.
            TypeError, ValueError: If a rule of somebody's own answers with something else than a
                boolean for each cell.
        """
        every = torch.arange(queries, device=device)
        return self.rows(every, batch, heads, queries, keys)

    def rows(
        self, rows: Int[Tensor, " rows"], batch: int, heads: int, queries: int, keys: int
    ) -> Allowed:
        """The rows of `dense` for these queries, without building the others."""
        sizes = Sizes(batch, heads, queries, keys)
        for atom in self.atoms():
            atom.fit(sizes)
        device = rows.device
        cells = Cells(
            sizes,
            batch=rearrange(torch.arange(batch, device=device), "batch -> batch 1 1 1"),
            head=rearrange(torch.arange(heads, device=device), "heads -> 1 heads 1 1"),
            query=rearrange(rows, "query -> 1 1 query 1"),
            key=rearrange(torch.arange(keys, device=device), "key -> 1 1 1 key"),
            texts=self._texts(sizes, device),
        )
        return self.on(cells)

    def chunk(
        self, part: slice, batch: int, heads: int, queries: int, keys: int, device: Device = None
    ) -> Allowed:
        """The rows of `dense` for a slice of the queries, without building the others."""
        every = torch.arange(*part.indices(queries), device=device)
        return self.rows(every, batch, heads, queries, keys)

    def mask_mod(self, queries: int | None = None, keys: int | None = None) -> Rule:
        """The rule for FlexAttention's `create_block_mask`, with the lengths if it needs them.

        Tell that function the batch and heads: where it is told None, it asks about row 0 alone.

        Raises:
            ValueError: If the rule needs the lengths, or holds tensors that fit no such sizes.
        """
        if None in (queries, keys) and any(atom.needs_lengths() for atom in self.atoms()):
            raise ValueError(f"{self!r} depends on the lengths: mask_mod(queries=…, keys=…)")
        sizes = self.sizes(queries, keys)
        for atom in self.atoms():
            atom.fit(sizes)
        texts = self._texts(sizes, torch.get_default_device())
        # FlexAttention counts the arguments in the code of a function, which a decorator hides.
        return lambda batch, head, query, key: self.on(Cells(sizes, batch, head, query, key, texts))

    def sizes(self, queries: int | None, keys: int | None, default: int = 1) -> Sizes:
        """The sizes that the rules here are made for; lengths that none says are the default."""
        atoms = list(self.atoms())
        spans = [(queries, keys), *(atom.spans() for atom in atoms)]
        queries, keys = (
            next((n for n in known if n is not None), None) for known in zip(*spans, strict=True)
        )
        batch, heads = (max(held) for held in zip(*(a.holds() for a in atoms), strict=True))
        default = max(default, *(atom.least_keys() for atom in atoms))
        return Sizes(batch, heads, queries or keys or default, keys or queries or default)

    def on(self, cells: Cells) -> Allowed:
        """The mask at these cells."""
        query, key = cells.query, cells.key
        if self.counts_real_tokens:
            query, key, _ = cells.in_text()
        return checked(self, self.allows(cells.batch, cells.head, query, key), cells)

    def draw(self, n: int, batch: int = 0, head: int = 0, keys: int | None = None) -> str:
        """The mask of n queries and as many keys as text: '#' may attend, '.' may not.

        Args:
            n: Queries.
            batch: The batch row to draw.
            head: The head to draw.
            keys: Keys, if not as many as queries.

        >>> from variants.masks import Causal, Window
        >>> print((Causal() & Window(radius=1)).draw(4))
        #...
        ##..
        .##.
        ..##
        """
        held = [(batch + 1, head + 1), *(atom.holds() for atom in self.atoms())]
        batches, heads = (max(sizes) for sizes in zip(*held, strict=True))
        keys = n if keys is None else keys
        cells = self.dense(batches, heads, n, keys).expand(batches, heads, n, keys)
        return drawn(cells[batch, head])

    def _texts(self, sizes: Sizes, device: torch.device) -> Texts | None:
        """Where the texts are, if a rule here counts their tokens and another one tells."""
        if not any(atom.counts_real_tokens for atom in self.atoms()):
            return None
        # Only rules that the answer depends on count: equal masks must give equal tensors.
        keep = all_keep([atom.keep(sizes.batch, sizes.keys, device) for atom in _needed(self)])
        starts = None
        if sizes.queries == sizes.keys:
            starts = self.starts(sizes.batch, sizes.keys, device)
        return Texts.of(keep, starts)

    # Tokens

    def positions(
        self, batch: int, queries: int, device: Device = None
    ) -> Int[Tensor, "batch_or_1 queries"]:
        """The position index of each token: counted from where its text starts.

        Left-padded rows count from their first real token, packed documents each from their own
        start. Tokens before the start get 0.
        """
        index = rearrange(torch.arange(queries, device=device), "queries -> 1 queries")
        keep, starts = self.keep(batch, queries, device), self.starts(batch, queries, device)
        texts = Texts.of(keep, starts)
        return index if texts is None else (index - texts.first).clamp(min=0)

    def starts(
        self, batch: int, keys: int, device: Device = None
    ) -> Int[Tensor, "batch_or_1 keys"] | None:
        """For each token, where its document starts; None: there is one document."""
        return None

    def keep(
        self, batch: int, keys: int, device: Device = None
    ) -> Bool[Tensor, "batch keys"] | None:
        """Which tokens are real; None where the mask does not say."""
        return None

    # Looking ahead

    def looks_ahead(self) -> bool:
        """May some query attend to a later key, at whatever length?

        The laws of the algebra settle most masks. For others cells are looked at, as many as it
        takes for every rule to have shown all that it does (`repeats`).
        """
        rules = _rules_beside_earlier(self)
        if isinstance(rules, bool):
            return rules
        queries, keys = _horizon([rule.repeats() for rule in rules])
        sizes = self.sizes(None, None, default=keys)
        if any(rule.spans() != (None, None) for rule in rules):
            return self._allows_later(sizes, sizes.queries)
        lengths = {sizes.keys}
        if any(rule.needs_lengths() for rule in rules):
            lengths |= {2**power for power in range(1, sizes.keys.bit_length())}
        return any(
            self._allows_later(Sizes(sizes.batch, sizes.heads, n, n), min(queries, n))
            for n in sorted(lengths)
        )

    def _allows_later(self, sizes: Sizes, queries: int) -> bool:
        """Do the first queries see a later key, as far as it is affordable to look?"""
        row = sizes.batch * sizes.heads * sizes.keys
        some, affordable = max(AT_ONCE // row, 1), AT_MOST // row
        for first in range(0, min(queries, affordable), some):
            rows = torch.arange(first, min(first + some, queries))
            allowed = self.rows(rows, *sizes.shape)
            later = torch.arange(sizes.keys) > rearrange(rows, "query -> query 1")
            if bool((allowed & later).any()):
                return True
        return queries > affordable


class Combination(Mask):
    """Several masks joined by one operator."""

    sign: ClassVar[str]

    def __init__(self, *parts: Mask) -> None:
        self.parts = parts

    def atoms(self) -> Iterator[Mask]:
        for part in self.parts:
            yield from part.atoms()

    def __repr__(self) -> str:
        return "(" + f" {self.sign} ".join(map(repr, self.parts)) + ")"

    def starts(
        self, batch: int, keys: int, device: Device = None
    ) -> Int[Tensor, "batch_or_1 keys"] | None:
        starts = [rule.starts(batch, keys, device) for rule in _implied(self)]
        starts = [start for start in starts if start is not None]
        return reduce(torch.maximum, starts) if starts else None

    def keep(
        self, batch: int, keys: int, device: Device = None
    ) -> Bool[Tensor, "batch keys"] | None:
        return all_keep([rule.keep(batch, keys, device) for rule in _implied(self)])


class Both(Combination):
    """What every part allows."""

    sign = "&"

    def conjuncts(self) -> Iterator[Mask]:
        for part in self.parts:
            yield from part.conjuncts()

    def on(self, cells: Cells) -> Allowed:
        return reduce(torch.logical_and, [part.on(cells) for part in self.parts])

    def _diagram(self, rules: "_Numbered") -> Node:
        return reduce(_diagrams.both, [part._diagram(rules) for part in self.parts])


class Either(Combination):
    """What at least one part allows."""

    sign = "|"

    def on(self, cells: Cells) -> Allowed:
        return reduce(torch.logical_or, [part.on(cells) for part in self.parts])

    def _diagram(self, rules: "_Numbered") -> Node:
        forbidden = [_diagrams.negate(part._diagram(rules)) for part in self.parts]
        return _diagrams.negate(reduce(_diagrams.both, forbidden))


class Not(Combination):
    """What its part does not allow."""

    def __init__(self, part: Mask) -> None:
        super().__init__(part)

    def __invert__(self) -> Mask:
        return self.parts[0]

    def on(self, cells: Cells) -> Allowed:
        return torch.logical_not(self.parts[0].on(cells))

    def _diagram(self, rules: "_Numbered") -> Node:
        return _diagrams.negate(self.parts[0]._diagram(rules))

    def __repr__(self) -> str:
        return f"~{self.parts[0]!r}"


class FromRule(Mask):
    """The mask of a function of (batch, head, query, key)."""

    def __init__(self, rule: Rule) -> None:
        if not callable(rule):
            raise TypeError(
                "a mask rule is a function of (batch, head, query, key); "
                f"got {type(rule).__name__} (a boolean tensor: Dense)"
            )
        self.rule = rule

    def __repr__(self) -> str:
        # No address, so that the same mask reads the same in every process.
        return f"Mask.from_rule({getattr(self.rule, '__qualname__', type(self.rule).__name__)})"

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Any:
        return self.rule(batch, head, query, key)


def _combined(kind: type[Combination], left: Mask, right: Mask) -> Mask:
    """Two masks joined, without what cannot matter, so that cheap masks stay recognizable."""
    for one, other in ((left, right), (right, left)):
        if _same_rule(one, other) or one.unrestricted:
            return other if kind is Both else one
        if isinstance(one, Not) and one.parts[0].unrestricted:
            return one if kind is Both else other
    parts = [
        part for mask in (left, right) for part in (mask.parts if type(mask) is kind else (mask,))
    ]
    return kind(*parts)


def _same_rule(one: Mask, other: Mask) -> bool:
    """Can it be seen without reading a tensor that both are the same rule?"""
    if one is other or type(one) is not type(other) or isinstance(one, Combination):
        return one is other
    options = [*vars(one).values(), *vars(other).values()]
    plain = all(isinstance(option, (int, float, str, type(None))) for option in options)
    return plain and one.key() == other.key()


class _Numbered:
    """The rules of combinations, each of which has a number."""

    def __init__(self) -> None:
        self.rules: list[Mask] = []

    def number(self, rule: Mask) -> int:
        """The number of a rule, or of an equal one."""
        for number, known in enumerate(self.rules):
            if rule is known or (type(rule) is type(known) and rule.key() == known.key()):
                return number
        self.rules.append(rule)
        return len(self.rules) - 1


class _Parts(NamedTuple):
    """What `&` joins: rules that nothing else can depend on, and the diagram of the rest."""

    alone: list[Mask]
    rest: Node
    rules: list[Mask]


def _needed(mask: Mask) -> Iterator[Mask]:
    """The rules that the mask depends on."""
    parts = _parted(mask)
    wanted = sorted(_diagrams.variables(parts.rest))
    return iter(parts.alone + [parts.rules[number] for number in wanted])


def _implied(mask: Mask) -> Iterator[Mask]:
    """The rules that allow whatever the mask allows; none, if it allows nothing at all."""
    parts = _parted(mask)
    yield from parts.alone
    for number, rule in enumerate(parts.rules):
        forbidden = _diagrams.both(parts.rest, _diagrams.negate(_diagrams.variable(number)))
        if parts.rest is not False and forbidden is False:
            yield rule


def _parted(mask: Mask) -> _Parts:
    """The parts of a mask.

    A forward asks this. Telling apart two paddings reads their tensors, which waits for a GPU and
    ends a captured graph, so it is left to masks that need it.
    """
    parts = mask.parts if isinstance(mask, Both) else (mask,)
    kinds = {type(atom) for part in parts if isinstance(part, Combination) for atom in part.atoms()}
    alone: list[Mask] = []
    rest, numbered = True, _Numbered()
    for part in parts:
        if isinstance(part, Combination) or part.unrestricted or type(part) in kinds:
            rest = _diagrams.both(rest, part._diagram(numbered))
        else:
            alone.append(part)
    return _Parts([] if rest is False else alone, rest, numbered.rules)


def _rules_beside_earlier(mask: Mask) -> list[Mask] | bool:
    """The rules that the mask depends on at later keys, where some rules allow nothing.

    A truth value, where the mask depends on none there.
    """
    numbered = _Numbered()
    node = mask._diagram(numbered)
    for number, rule in enumerate(numbered.rules):
        if not rule.sees_later:
            node = _diagrams.without(node, number)
    if isinstance(node, bool):
        return node
    return [numbered.rules[number] for number in sorted(_diagrams.variables(node))]


def _horizon(repeats: list[Repeats]) -> tuple[int, int]:
    """How many queries, of how many keys, show every combination of what the rules answer."""
    start, step = max(one.start for one in repeats), lcm(*(one.step for one in repeats))
    reach, rate = max(one.reach for one in repeats), lcm(*(one.rate for one in repeats))
    queries = start + step
    return queries, queries + max(reach, start) + lcm(step, rate) + 1
