from collections.abc import Hashable, Sequence
from numbers import Integral

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

from variants.masks._cells import Allowed, Cells, Device, Sizes, a_tensor, content
from variants.masks.mask import Mask


class Padding(Mask):
    """Every query may attend to the real tokens of its sequence, and to no padding.

    `Padding(lengths=[2, 4])` pads on the right; `Padding(keep=…)` marks the real tokens, shape
    (batch, key), so that padding may stand left, right or between. Only keys are masked: a padded
    query still attends to the real tokens, which keeps its row finite.

    Raises:
        TypeError: If `keep` is not boolean or `lengths` not whole numbers.
        ValueError: If not exactly one of the two is given, or its rank or sizes do not fit; when
            lowered for fewer keys than the longest sequence has.
    """

    name = "padding"
    examples = (
        {"lengths": [3, 6]},
        {"keep": torch.tensor([[False, True, True, False], [True] * 4])},
    )

    def __init__(
        self,
        lengths: Int[Tensor, " batch"] | Sequence[int] | None = None,
        keep: Bool[Tensor, "batch keys"] | None = None,
    ) -> None:
        if (lengths is None) == (keep is None):
            raise ValueError("padding is told by lengths or by keep: give exactly one of the two")
        self._lengths = None if lengths is None else _whole(lengths)
        self._keep = None if keep is None else _boolean(keep)
        self._longest = 0 if self._lengths is None else _longest(self._lengths)

    @classmethod
    def from_tokens(cls, tokens: Int[Tensor, "batch seq"], pad_id: int) -> "Padding":
        """The padding of a batch of token ids, of which pad_id is no real token."""
        if a_tensor("tokens", tokens).is_floating_point() or not isinstance(pad_id, Integral):
            raise TypeError(
                "padding is told by token ids and the id that is padding; "
                f"got {tokens.dtype} and pad_id={pad_id!r}"
            )
        return cls(keep=tokens != pad_id)

    def key(self) -> Hashable:
        return content([self._lengths, self._keep])

    def holds(self) -> tuple[int, int]:
        return self._known().shape[0], 1

    def spans(self) -> tuple[int | None, int | None]:
        return None, None if self._keep is None else self._keep.shape[1]

    def least_keys(self) -> int:
        return self._longest

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
        # A captured graph would be tied to the longest sequence of its first batch.
        if not torch.compiler.is_compiling() and self._longest > sizes.keys:
            raise ValueError(
                f"padding of a sequence of {self._longest} tokens does not fit {sizes.keys} keys"
            )

    def _known(self) -> Tensor:
        known = self._lengths if self._keep is None else self._keep
        assert known is not None
        return known

    def keep(self, batch: int, keys: int, device: Device = None) -> Bool[Tensor, "batch keys"]:
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
    return lengths


def _longest(lengths: Tensor) -> int:
    if torch.compiler.is_compiling() or not lengths.numel():
        return 0
    least, longest = map(int, lengths.aminmax())
    if least < 0:
        raise ValueError(f"lengths are 0 or more; got {least}")
    return longest


def _boolean(keep: Tensor) -> Tensor:
    if a_tensor("keep", keep).dtype != torch.bool:
        raise TypeError(f"keep is bool, True = a real token; got {keep.dtype}")
    if keep.ndim != 2:
        raise ValueError(f"keep has shape (batch, key); got {tuple(keep.shape)}")
    return keep
