"""Masks made of masks, by `&`, `|` and `~`, and of functions."""

from collections.abc import Iterator
from functools import reduce
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from variants.masks._cells import Allowed, Cells, Index, Sizes, all_keep
from variants.masks.mask import Mask, Rule


class _Combination(Mask):
    """Several masks joined by one operator."""

    sign: ClassVar[str]

    def __init__(self, *parts: Mask) -> None:
        self.parts = parts

    def atoms(self) -> Iterator[Mask]:
        for part in self.parts:
            yield from part.atoms()

    def __repr__(self) -> str:
        return "(" + f" {self.sign} ".join(map(repr, self.parts)) + ")"


class Both(_Combination):
    """What every part allows."""

    sign = "&"

    def on(self, cells: Cells) -> Allowed:
        return reduce(torch.logical_and, [part.on(cells) for part in self.parts])

    def starts(
        self, batch: int, keys: int, device: torch.device | str | None = None
    ) -> Int[Tensor, "batch_or_1 keys"] | None:
        starts = [part.starts(batch, keys, device) for part in self.parts]
        starts = [start for start in starts if start is not None]
        return reduce(torch.maximum, starts) if starts else None

    def keep(
        self, batch: int, keys: int, device: torch.device | str | None = None
    ) -> Bool[Tensor, "batch keys"] | None:
        return all_keep([part.keep(batch, keys, device) for part in self.parts])


class Either(_Combination):
    """What at least one part allows."""

    sign = "|"

    def on(self, cells: Cells) -> Allowed:
        return reduce(torch.logical_or, [part.on(cells) for part in self.parts])


class Not(_Combination):
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
        self.rule = rule

    def __repr__(self) -> str:
        # No address, so that the same mask reads the same in every process.
        return f"Mask.from_rule({getattr(self.rule, '__qualname__', type(self.rule).__name__)})"

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        return self.rule(batch, head, query, key)

    def fit(self, sizes: Sizes) -> None:
        zero = torch.zeros(1, 1, 1, 1, dtype=torch.long)
        answer = self.rule(zero, zero, zero, zero)
        if not isinstance(answer, Tensor) or answer.dtype != torch.bool:
            came = answer.dtype if isinstance(answer, Tensor) else type(answer).__name__
            raise TypeError(f"a mask rule returns a bool tensor; {self.rule!r} returned {came}")


def combine(kind: type[_Combination], left: Mask, right: Mask) -> Mask:
    """Join two masks, dropping what cannot matter, so that cheap masks stay recognizable."""
    for one, other in ((left, right), (right, left)):
        if one is other or one.unrestricted:
            return other if kind is Both else one
        if isinstance(one, Not) and one.parts[0].unrestricted:
            return one if kind is Both else other
    parts = [
        part for mask in (left, right) for part in (mask.parts if type(mask) is kind else (mask,))
    ]
    return kind(*parts)
