"""Masks made of masks, by `&`, `|` and `~`, and of functions."""

from collections.abc import Iterator
from functools import reduce
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from variants.masks import _normal
from variants.masks._cells import Allowed, Cells, Index, all_keep
from variants.masks._lowering import Rule
from variants.masks.mask import Mask


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
        self, batch: int, keys: int, device: torch.device | str | None = None
    ) -> Int[Tensor, "batch_or_1 keys"] | None:
        starts = [rule.starts(batch, keys, device) for rule in _normal.implied(self)]
        starts = [start for start in starts if start is not None]
        return reduce(torch.maximum, starts) if starts else None

    def keep(
        self, batch: int, keys: int, device: torch.device | str | None = None
    ) -> Bool[Tensor, "batch keys"] | None:
        return all_keep([rule.keep(batch, keys, device) for rule in _normal.implied(self)])


class Both(Combination):
    """What every part allows."""

    sign = "&"

    def conjuncts(self) -> Iterator[Mask]:
        for part in self.parts:
            yield from part.conjuncts()

    def on(self, cells: Cells) -> Allowed:
        return reduce(torch.logical_and, [part.on(cells) for part in self.parts])


class Either(Combination):
    """What at least one part allows."""

    sign = "|"

    def on(self, cells: Cells) -> Allowed:
        return reduce(torch.logical_or, [part.on(cells) for part in self.parts])


class Not(Combination):
    """What its part does not allow."""

    def __init__(self, part: Mask) -> None:
        super().__init__(part)

    def __invert__(self) -> Mask:
        return self.parts[0]

    def on(self, cells: Cells) -> Allowed:
        return torch.logical_not(self.parts[0].on(cells))

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


def combine(kind: type[Combination], left: Mask, right: Mask) -> Mask:
    """Join two masks, dropping what cannot matter, so that cheap masks stay recognizable."""
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
