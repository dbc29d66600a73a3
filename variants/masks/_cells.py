"""What a mask is asked about: sizes, and the index tensors of its cells."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

Index = Int[Tensor, "..."]
Allowed = Bool[Tensor, "..."]


@dataclass(frozen=True)
class Sizes:
    """How many batch rows, heads, queries and keys a mask is asked about."""

    batch: int
    heads: int
    queries: int
    keys: int


@dataclass(frozen=True)
class Cells:
    """The cells that a mask is asked about: four index tensors that broadcast to all of them.

    `first` holds the index of the first real token of each batch row where the mask pads on the
    left, and is None where it does not.
    """

    sizes: Sizes
    batch: Index
    head: Index
    query: Index
    key: Index
    first: Index | None = None


def whole(name: str, value: Any, least: int) -> int:
    """The value, if it is a whole number of at least `least`.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is a whole number of at least {least}; got {name}={value!r}")
    return value


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
    """An option as something to compare: a tensor by its numbers."""
    if isinstance(value, Tensor):
        return tuple(value.shape), tuple(value.flatten().tolist())
    return value
