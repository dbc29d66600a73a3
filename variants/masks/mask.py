"""The contract of masks, and their algebra."""

from collections.abc import Callable, Hashable, Iterator
from typing import ClassVar

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

from variants.masks import _normal
from variants.masks._cells import Allowed, Cells, Index, Sizes, all_keep, content, drawn, first_of
from variants.masks._conversions import Forms

Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Mask(Forms):
    """Which keys each query may attend to: a boolean rule over (batch, head, query, key).

    **True means: may attend.** `scaled_dot_product_attention`, FlexAttention and Hugging Face's
    0/1 masks agree; `nn.MultiheadAttention` and `nn.TransformerEncoder` say the opposite.

    Masks are values. They combine with `&` (both allow), `|` (either allows) and `~` (does not
    allow), and are equal when their rules are the same combination up to the laws of that algebra.
    A query that may attend to nothing gets output 0, weights 0 and gradient 0.

    Indices are positions in the tensor, except where the mask pads on the left: rules that count
    from the start of the text (`counts_real_tokens`) then count from the first real token.

    A mask of your own extends this class and overrides `allows`, or is `Mask.from_rule(f)`.
    """

    name: ClassVar[str]
    counts_real_tokens: ClassVar[bool] = False
    """True: the rule depends on where the text starts, not only on distances."""
    unrestricted: ClassVar[bool] = False
    """True: the rule allows everything."""

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        """May the query attend to the key? The four index tensors broadcast to one another."""
        raise NotImplementedError(f"{type(self).__qualname__} must override allows")

    @staticmethod
    def from_rule(rule: Rule) -> "Mask":
        """The mask of a function `rule(batch, head, query, key) -> bool tensor`."""
        from variants.masks._combinations import FromRule

        return FromRule(rule)

    def __and__(self, other: "Mask") -> "Mask":
        from variants.masks._combinations import Both, combine

        return combine(Both, self, other) if isinstance(other, Mask) else NotImplemented

    def __or__(self, other: "Mask") -> "Mask":
        from variants.masks._combinations import Either, combine

        return combine(Either, self, other) if isinstance(other, Mask) else NotImplemented

    def __invert__(self) -> "Mask":
        from variants.masks._combinations import Not

        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a mask is neither true nor false: combine masks with &, | and ~")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mask):
            return NotImplemented
        return self is other or _normal.same(self, other)

    def __hash__(self) -> int:
        return hash(frozenset(rule.key() for rule in _normal.needed(self)))

    def __repr__(self) -> str:
        options = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({options})"

    def key(self) -> Hashable:
        """What tells this rule from others of its class; equal keys mean equal rules."""
        return tuple(map(content, vars(self).values()))

    def holds(self) -> tuple[int, int]:
        """How many batch rows and heads the rule tells apart; 1 where all are alike."""
        return 1, 1

    def spans(self) -> tuple[int | None, int | None]:
        """How many queries and keys the rule is made for; None where any number will do."""
        return None, None

    def needs_lengths(self) -> bool:
        """Does the rule read the number of queries or keys?"""
        return False

    def atoms(self) -> Iterator["Mask"]:
        """The rules that this mask combines."""
        yield self

    def dense(
        self,
        batch: int,
        heads: int,
        queries: int,
        keys: int,
        device: torch.device | str | None = None,
    ) -> Allowed:
        """The mask as a boolean tensor of the smallest shape that broadcasts to those sizes.

        Raises:
            ValueError: If the mask holds a tensor that does not fit the sizes.
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
            first=self._first_real(sizes, device),
        )
        return self.on(cells)

    def chunk(
        self,
        part: slice,
        batch: int,
        heads: int,
        queries: int,
        keys: int,
        device: torch.device | str | None = None,
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
        first = self._first_real(sizes, torch.get_default_device())
        starts = None if first is None else rearrange(first, "batch 1 1 1 -> batch")
        # FlexAttention counts the arguments in the code of a function, which a decorator hides.
        return lambda batch, head, query, key: self.on(
            Cells(
                *(sizes, batch, head, query, key),
                first=None if starts is None else starts.to(key.device)[batch],
            )
        )

    def sizes(self, queries: int | None, keys: int | None, default: int = 1) -> Sizes:
        """The sizes that the rules here are made for; lengths that none says are the default."""
        spans = [(queries, keys), *(atom.spans() for atom in self.atoms())]
        held = [atom.holds() for atom in self.atoms()]
        queries, keys = (
            next((n for n in known if n is not None), None) for known in zip(*spans, strict=True)
        )
        batch, heads = (max(sizes) for sizes in zip(*held, strict=True))
        return Sizes(batch, heads, queries or keys or default, keys or queries or default)

    def on(self, cells: Cells) -> Allowed:
        """The mask at these cells."""
        query, key = cells.query, cells.key
        if self.counts_real_tokens and cells.first is not None:
            query, key = query - cells.first, key - cells.first
        return self.allows(cells.batch, cells.head, query, key)

    def fit(self, sizes: Sizes) -> None:
        """Check that the rule can answer for these sizes.

        Raises:
            ValueError: If it cannot, naming both sizes.
        """

    def _first_real(self, sizes: Sizes, device: torch.device) -> Index | None:
        """The first real token of each row, where a rule here counts from it."""
        if not any(atom.counts_real_tokens for atom in self.atoms()):
            return None
        # Only rules that the answer depends on count: equal masks must give equal tensors.
        known = [atom.keep(sizes.batch, sizes.keys, device) for atom in _normal.needed(self)]
        keep = all_keep(known)
        return None if keep is None else rearrange(first_of(keep), "batch -> batch 1 1 1")

    def positions(
        self, batch: int, queries: int, device: torch.device | str | None = None
    ) -> Int[Tensor, "batch_or_1 queries"]:
        """The position index of each token: counted from where its text starts.

        Left-padded rows count from their first real token, packed documents each from their own
        start. Tokens before the start get 0.
        """
        index = rearrange(torch.arange(queries, device=device), "queries -> 1 queries")
        starts, keep = self.starts(batch, queries, device), self.keep(batch, queries, device)
        if starts is not None:
            index = index - starts
        if keep is not None:
            first = rearrange(first_of(keep), "batch -> batch 1")
            index = torch.minimum(index, torch.arange(queries, device=device) - first)
        return index.clamp(min=0)

    def starts(
        self, batch: int, keys: int, device: torch.device | str | None = None
    ) -> Int[Tensor, "batch_or_1 keys"] | None:
        """For each token, where its document starts; None: there is one document."""
        return None

    def keep(
        self, batch: int, keys: int, device: torch.device | str | None = None
    ) -> Bool[Tensor, "batch keys"] | None:
        """Which tokens are real; None where the mask does not say."""
        return None

    def draw(self, n: int, batch: int = 0, head: int = 0) -> str:
        """The mask of n queries and n keys as text: '#' may attend, '.' may not.

        >>> from variants.masks import Causal, Window
        >>> print((Causal() & Window(radius=1)).draw(4))
        #...
        ##..
        .##.
        ..##
        """
        held = [(batch + 1, head + 1), *(atom.holds() for atom in self.atoms())]
        batches, heads = (max(sizes) for sizes in zip(*held, strict=True))
        cells = self.dense(batches, heads, n, n).expand(batches, heads, n, n)
        return drawn(cells[batch, head])
