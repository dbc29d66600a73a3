"""What a mask is asked about: sizes, and the index tensors of its cells."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import reduce
from numbers import Integral
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

Index = Int[Tensor, "..."]
Allowed = Bool[Tensor, "..."]
Device = torch.device | str | None


@dataclass(frozen=True)
class Sizes:
    """How many batch rows, heads, queries and keys a mask is asked about."""

    batch: int
    heads: int
    queries: int
    keys: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The sizes in the order in which a mask is asked for them."""
        return self.batch, self.heads, self.queries, self.keys


@dataclass(frozen=True)
class Repeats:
    """From where on a rule only repeats itself.

    Args:
        start: From this index on, queries and keys that both move on by `step` get the same.
        step: See `start`.
        reach: Beyond this distance, a key that moves away by `rate` gets the same from its query,
            as long as both are at `start` or later.
        rate: See `reach`.
    """

    start: int = 0
    step: int = 1
    reach: int = 0
    rate: int = 1


@dataclass(frozen=True)
class Texts:
    """Of each batch row the index of its first real token, and the tokens from there to the last
    real one."""

    first: Int[Tensor, " batch"]
    tokens: Int[Tensor, " batch"]

    @classmethod
    def of(cls, keep: Bool[Tensor, "batch keys"]) -> "Texts":
        """The texts of rows whose real tokens are marked."""
        first = first_of(keep)
        return cls(first, keep.shape[1] - first - first_of(keep.flip(-1)))


@dataclass(frozen=True)
class Cells:
    """The cells that a mask is asked about: four index tensors that broadcast to all of them.

    `texts` is None where no padding says which tokens are real.
    """

    sizes: Sizes
    batch: Index
    head: Index
    query: Index
    key: Index
    texts: Texts | None = None

    def first(self) -> Index | int:
        """The first real token."""
        return 0 if self.texts is None else self.texts.first.to(self.batch.device)[self.batch]

    def tokens(self) -> Index | int:
        """How many tokens there are from the first real one to the last."""
        if self.texts is None:
            return self.sizes.keys
        return self.texts.tokens.to(self.batch.device)[self.batch]


def whole(name: str, value: Any, least: int) -> int:
    """The value, if it is a whole number of at least `least`.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is a whole number of at least {least}; got {name}={value!r}")
    return int(value)


def drawn(cells: Bool[Tensor, "query key"]) -> str:
    """The cells as text, a line for each query: '#' may attend, '.' may not."""
    return "\n".join("".join("#" if cell else "." for cell in row) for row in cells.tolist())


def all_keep(keeps: list[Tensor | None]) -> Tensor | None:
    """What every mask that says so calls real; None where none says."""
    known = [keep for keep in keeps if keep is not None]
    return reduce(torch.logical_and, known) if known else None


def first_of(keep: Bool[Tensor, "batch keys"]) -> Int[Tensor, " batch"]:
    """The first real token of each row."""
    return keep.to(torch.uint8).argmax(dim=-1)


def content(value: Any) -> Hashable:
    """An option as something to compare: tensors and lists by what they hold."""
    if isinstance(value, list | tuple):
        return tuple(map(content, value))
    if hasattr(value, "shape") and hasattr(value, "tolist"):
        return tuple(value.shape), content(value.tolist())
    return value


def a_tensor(name: str, value: Any) -> Tensor:
    """The value, if it is a tensor.

    Raises:
        TypeError: If it is not.
    """
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} is a tensor; got {type(value).__name__} (torch.as_tensor makes one)"
        )
    return value


def checked(rule: Any, allowed: Any, cells: Cells) -> Allowed:
    """What a rule answered, if it is a boolean for each cell.

    Raises:
        TypeError: If it is no boolean tensor.
        ValueError: If it has another shape than the cells that it was asked about.
    """
    if not isinstance(allowed, Tensor) or allowed.dtype != torch.bool:
        came = allowed.dtype if isinstance(allowed, Tensor) else type(allowed).__name__
        raise TypeError(f"a mask rule returns a bool tensor; {rule!r} returned {came}")
    index = (cells.batch, cells.head, cells.query, cells.key)
    asked = torch.broadcast_shapes(*(at.shape for at in index))
    if allowed.ndim == 0 and asked:
        return allowed.expand((1,) * len(asked))
    fits = [n in (1, cells) for n, cells in zip(allowed.shape, asked, strict=False)]
    if allowed.ndim != len(asked) or not all(fits):
        raise ValueError(
            f"a mask rule answers for the cells that it is asked about, here {tuple(asked)}; "
            f"{rule!r} returned {tuple(allowed.shape)} (a table is indexed: table[query, key])"
        )
    return allowed
