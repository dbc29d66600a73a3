"""What a mask is asked about: sizes, and the index tensors of its cells."""

from dataclasses import dataclass

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
