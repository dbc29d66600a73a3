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
    """The texts that tokens belong to: a batch row without its padding, or one of its documents.

    Args:
        first: The index of the first real token in the text of each token.
        tokens: The number of tokens from there to the last real one of that text.

    Where all tokens of a row are of one text, the second axis has length 1.
    """

    first: Int[Tensor, "batch_or_1 keys_or_1"]
    tokens: Int[Tensor, "batch_or_1 keys_or_1"]

    @classmethod
    def of(
        cls,
        keep: Bool[Tensor, "batch keys"] | None,
        starts: Int[Tensor, "batch_or_1 keys"] | None,
    ) -> "Texts | None":
        """The texts of rows whose real tokens, or the starts of whose documents, are known.

        A text of padding alone starts where it starts, and has all of its tokens.
        """
        if starts is None:
            if keep is None:
                return None
            first = keep.to(torch.uint8).argmax(dim=-1, keepdim=True)
            last = keep.shape[1] - 1 - keep.flip(-1).to(torch.uint8).argmax(dim=-1, keepdim=True)
            return cls(first, last - first + 1)
        rows = starts.shape[0] if keep is None else keep.shape[0]
        starts = starts.expand(rows, -1)
        index = torch.arange(starts.shape[1], device=starts.device).expand_as(starts)
        first, last = _ends(index, index, starts)
        if keep is not None:
            beyond = starts.shape[1]
            least, most = _ends(
                torch.where(keep, index, beyond), torch.where(keep, index, -1), starts
            )
            real = most >= 0
            first, last = torch.where(real, least, first), torch.where(real, most, last)
        return cls(first, last - first + 1)

    def at(self, batch: Index, token: Index) -> tuple[Index, Index]:
        """`first` and `tokens` of these tokens."""
        row = batch if self.first.shape[0] > 1 else torch.zeros_like(batch)
        column = token if self.first.shape[1] > 1 else torch.zeros_like(token)
        first, tokens = (one.to(token.device) for one in (self.first, self.tokens))
        return first[row, column], tokens[row, column]


def _ends(least: Tensor, most: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest and the largest index of each text, for each of its tokens."""
    low = least.scatter_reduce(-1, starts, least, "amin")
    high = most.scatter_reduce(-1, starts, most, "amax")
    return low.gather(-1, starts), high.gather(-1, starts)


@dataclass(frozen=True)
class Cells:
    """The cells that a mask is asked about: four index tensors that broadcast to all of them.

    `texts` is None where each row is one text of its own.
    """

    sizes: Sizes
    batch: Index
    head: Index
    query: Index
    key: Index
    texts: Texts | None = None

    def in_text(self) -> tuple[Index, Index, Index | int]:
        """Query and key, each counted from the first real token of its text, and the number of
        tokens in the text of the query."""
        if self.texts is None:
            return self.query, self.key, self.sizes.keys
        first, tokens = self.texts.at(self.batch, self.query)
        return self.query - first, self.key - self.texts.at(self.batch, self.key)[0], tokens


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
