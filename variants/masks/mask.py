"""The contract of masks, and their algebra."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

from variants.masks import _normal
from variants.masks._cells import Allowed, Index, Repeats, Sizes, content, first_of
from variants.masks._conversions import Forms
from variants.masks._lowering import Lowering, Rule

CONVENTION = 1
"""The version of what masks mean here, kept with every run of a study.

It is raised whenever a mask could come to mean something else: what True says; which axes a tensor
of two, three or four axes has; what a query that may attend to nothing gets; where indices count
from under padding; which tokens `keep` calls real; what a mask of a given name and options allows.
"""

UNTOLD = 512
"""So far a rule is followed at least that does not tell from where on it repeats itself."""


class Mask(Lowering, Forms):
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

    def least_keys(self) -> int:
        """The fewest keys that the rule makes sense for."""
        return 0

    def needs_lengths(self) -> bool:
        """Does the rule read the number of queries or keys?"""
        return False

    def repeats(self) -> Repeats:
        """From where on the rule only repeats itself, so that looking on shows nothing new.

        A mask of your own is looked at as far as its whole numbers suggest, if it does not tell.
        """
        numbers = [n for n in vars(self).values() if isinstance(n, int) and n <= UNTOLD]
        far = UNTOLD + 2 * max([0, *numbers])
        return Repeats(start=far, reach=far)

    def looks_ahead(self) -> bool:
        """May some query attend to a later key, at whatever length?"""
        from variants.masks._ahead import looks_ahead

        return looks_ahead(self)

    def atoms(self) -> Iterator["Mask"]:
        """The rules that this mask combines."""
        yield self

    def conjuncts(self) -> Iterator["Mask"]:
        """The masks that must all allow what this mask allows."""
        yield self

    def fit(self, sizes: Sizes) -> None:
        """Check that the rule can answer for these sizes.

        Raises:
            ValueError: If it cannot, naming both sizes.
        """

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
