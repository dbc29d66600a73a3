"""The padding mask."""

from collections.abc import Sequence

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

from variants.masks.mask import Allowed, Cells, Mask, Sizes


class Padding(Mask):
    """Every query may attend to the real tokens of its sequence, and to no padding.

    `Padding(lengths=[2, 4])` pads on the right; `Padding(keep=…)` marks the real tokens, shape
    (batch, key), so that padding may stand left, right or between. Only keys are masked: a padded
    query still attends to the real tokens, which keeps its row finite.

    Raises:
        TypeError: If `keep` is not boolean or `lengths` not whole numbers.
        ValueError: If not exactly one of the two is given, or its rank or sizes do not fit.
    """

    name = "padding"

    def __init__(
        self,
        lengths: Int[Tensor, " batch"] | Sequence[int] | None = None,
        keep: Bool[Tensor, "batch keys"] | None = None,
    ) -> None:
        if (lengths is None) == (keep is None):
            raise ValueError("padding is told by lengths or by keep: give exactly one of the two")
        self._lengths = None if lengths is None else _whole(lengths)
        self._keep = None if keep is None else _boolean(keep)

    @classmethod
    def from_tokens(cls, tokens: Int[Tensor, "batch seq"], pad_id: int) -> "Padding":
        """The padding of a batch of token ids, of which pad_id is no real token."""
        return cls(keep=tokens != pad_id)

    def holds(self) -> tuple[int, int]:
        return self._known().shape[0], 1

    def spans(self) -> tuple[int | None, int | None]:
        return None, None if self._keep is None else self._keep.shape[1]

    def __repr__(self) -> str:
        if self._keep is None:
            return f"Padding(lengths={self._known().tolist()})"
        return f"Padding(keep={tuple(self._keep.shape)})"

    def fit(self, sizes: Sizes) -> None:
        known = self._known()
        if known.shape[0] != sizes.batch:
            raise ValueError(
                f"padding for {known.shape[0]} sequences does not fit a batch of {sizes.batch}"
            )
        if self._keep is not None and self._keep.shape[1] != sizes.keys:
            raise ValueError(
                f"padding for {self._keep.shape[1]} keys does not fit {sizes.keys} keys"
            )

    def _known(self) -> Tensor:
        known = self._lengths if self._keep is None else self._keep
        assert known is not None
        return known

    def keep(
        self, batch: int, keys: int, device: torch.device | str | None = None
    ) -> Bool[Tensor, "batch keys"]:
        self.fit(Sizes(batch, 1, keys, keys))
        if self._keep is not None:
            return self._keep.to(torch.get_default_device() if device is None else device)
        index = torch.arange(keys, device=device)
        return index < rearrange(self._known().to(index.device), "batch -> batch 1")

    def on(self, cells: Cells) -> Allowed:
        known = self._known().to(cells.key.device)
        if self._keep is None:
            return cells.key < known[cells.batch]
        return known[cells.batch, cells.key]


def _whole(lengths: Tensor | Sequence[int]) -> Tensor:
    lengths = torch.as_tensor(lengths)
    if lengths.dtype.is_floating_point or lengths.dtype == torch.bool:
        raise TypeError(f"lengths are whole numbers; got {lengths.dtype}")
    if lengths.ndim != 1:
        raise ValueError(f"lengths has shape (batch,); got {tuple(lengths.shape)}")
    if not torch.compiler.is_compiling() and lengths.numel() and int(lengths.min()) < 0:
        raise ValueError(f"lengths are 0 or more; got {int(lengths.min())}")
    return lengths


def _boolean(keep: Tensor) -> Tensor:
    if keep.dtype != torch.bool:
        raise TypeError(f"keep is bool, True = a real token; got {keep.dtype}")
    if keep.ndim != 2:
        raise ValueError(f"keep has shape (batch, key); got {tuple(keep.shape)}")
    return keep
