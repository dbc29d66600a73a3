"""The forms in which other libraries hold masks."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

from variants.masks._cells import Device, Sizes, a_tensor

AnyMask = TypeVar("AnyMask")


class Forms:
    """The forms in which other libraries hold a mask; each `from_` undoes its `to_`.

    The name says which meaning True or 1 has, since a tensor does not tell. One whose dtype, rank
    or values do not fit is refused with a TypeError or ValueError that names what came.
    """

    sizes: Callable[..., Sizes]
    dense: Callable[..., Tensor]
    keep: Callable[..., Tensor | None]

    def to_ignore(
        self, batch: int, heads: int, queries: int, keys: int, device: Device = None
    ) -> Bool[Tensor, "query key"] | Bool[Tensor, "batch_heads query key"]:
        """For `attn_mask` of nn.MultiheadAttention, `mask` of nn.TransformerEncoder: True = ignore.

        Shape (query, key) where batch rows and heads are alike, else (batch·heads, query, key),
        the heads of a batch row side by side. With `need_weights`, nn.MultiheadAttention answers
        NaN for a query that may attend to nothing.
        """
        ignore = ~self.dense(batch, heads, queries, keys, device)
        if ignore.shape[:2] == (1, 1):
            return ignore[0, 0].expand(queries, keys)
        ignore = ignore.expand(batch, heads, queries, keys)
        return rearrange(ignore, "batch heads query key -> (batch heads) query key")

    @classmethod
    def from_ignore(cls: type[AnyMask], tensor: Tensor, heads: int | None = None) -> AnyMask:
        """From `attn_mask` of nn.MultiheadAttention, True = ignore.

        Shape (query, key), or (batch·heads, query, key) together with the number of heads.
        """
        came = _ignored(tensor)
        if tensor.ndim == 2:
            return _dense(~tensor)
        if tensor.ndim != 3:
            raise ValueError(
                f"an ignore mask has shape (query, key) or (batch·heads, query, key); {came} "
                "(four axes, True = keep: from_keep)"
            )
        if not isinstance(heads, int) or heads < 1 or tensor.shape[0] % heads:
            raise ValueError(
                "an ignore mask of three axes is (batch·heads, query, key): give the number of "
                f"heads, which divides the first axis; {came} and heads={heads}"
            )
        pattern = "(batch heads) query key -> batch heads query key"
        return _dense(~rearrange(tensor, pattern, heads=heads))

    def to_ignore_padding(
        self, batch: int, keys: int, device: Device = None
    ) -> Bool[Tensor, "batch key"]:
        """For `key_padding_mask` or `src_key_padding_mask`, (batch, key), True = ignore.

        Raises:
            ValueError: If the mask is more than padding.
        """
        heads = self.sizes(keys, keys).heads
        keep = _padding_alone(self, self.dense(batch, heads, keys, keys, device), batch, keys)
        if keep is None:
            raise ValueError(
                f"an ignore mask of padding holds padding and nothing else; got {self!r} "
                "(any mask: to_ignore)"
            )
        return ~keep

    @classmethod
    def from_ignore_padding(cls: type[AnyMask], tensor: Tensor) -> AnyMask:
        """From `key_padding_mask` or `src_key_padding_mask`, (batch, key), True = ignore."""
        came = _ignored(tensor)
        if tensor.ndim != 2:
            raise ValueError(
                f"an ignore mask of padding has shape (batch, key); {came} "
                "(with a query axis: from_ignore)"
            )
        return _padding(~tensor)

    def to_keep(
        self, batch: int, heads: int, queries: int, keys: int, device: Device = None
    ) -> Int[Tensor, "batch key"] | Bool[Tensor, "batch heads_or_1 query key"]:
        """For `attention_mask` of a Hugging Face model: 1 = keep.

        Padding alone is 0/1 of shape (batch, key), as tokenizers give it. Any other mask is bool
        of shape (batch, 1 or heads, query, key), which models hand on as it is, so it fits
        `attn_implementation="sdpa"`; "eager" would add it to the scores: give that `to_additive`.
        """
        allowed = self.dense(batch, heads, queries, keys, device)
        keep = _padding_alone(self, allowed, batch, keys)
        return allowed.expand(batch, -1, queries, keys) if keep is None else keep.long()

    @classmethod
    def from_keep(cls: type[AnyMask], tensor: Tensor) -> AnyMask:
        """From a Hugging Face `attention_mask`, bool or whole numbers: 1 = keep.

        Shape (batch, key) or (batch, 1, 1, key), which are padding, or (batch, 1 or heads, query,
        key).
        """
        came = _came(tensor)
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            raise TypeError(
                f"a keep mask is bool, or 0 and 1 in whole numbers; {came} (a float tensor that "
                "is added to the scores: from_additive)"
            )
        other = (tensor != 0) & (tensor != 1)
        if other.any():
            raise ValueError(
                f"a keep mask holds 0 and 1 alone; {came} with {tensor[other][0].item()} "
                "(numbers of documents: Documents(ids))"
            )
        return _padding(tensor > 0) if tensor.ndim == 2 else _of_four_axes(tensor > 0, came)

    def to_additive(
        self,
        dtype: torch.dtype,
        batch: int,
        heads: int,
        queries: int,
        keys: int,
        device: Device = None,
    ) -> Float[Tensor, "batch_or_1 heads_or_1 query_or_1 key"]:
        """What is added to the scores: 0 where a query may attend, -inf where it may not.

        Padding alone has shape (batch, 1, 1, key), any other mask (batch or 1, heads or 1, query,
        key). Not a finite number: scores can beat it, two of them overflow, and it lets a query
        that may attend to nothing attend to everything. There `scaled_dot_product_attention`
        keeps the contract, 0; a bare softmax says NaN.
        """
        if not dtype.is_floating_point:
            raise TypeError(
                f"an additive mask is of a floating-point dtype; got {dtype} "
                "(0/1 or bool: to_keep, to_ignore or dense)"
            )
        allowed = self.dense(batch, heads, queries, keys, device)
        if _padding_alone(self, allowed, batch, keys) is None:
            # Over one query any mask has the shape of padding, whose batch rows are never shared.
            allowed = allowed.expand(batch if queries == 1 else -1, -1, queries, keys)
        zero = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
        return zero.masked_fill(~allowed, float("-inf"))

    @classmethod
    def from_additive(cls: type[AnyMask], tensor: Tensor) -> AnyMask:
        """From a float tensor added to the scores: 0 = may attend; -inf or dtype minimum = may not.

        Shape (query, key), (batch or 1, heads or 1, query, key), or (batch, 1, 1, key), which is
        padding. Any other number is a bias, and refused.
        """
        came = _came(tensor)
        if not tensor.dtype.is_floating_point:
            raise TypeError(
                f"an additive mask is of a floating-point dtype; {came} (1 or True = keep: "
                "from_keep; True = ignore: from_ignore)"
            )
        allowed = tensor == 0
        other = ~(allowed | (tensor <= torch.finfo(tensor.dtype).min))
        if other.any():
            raise ValueError(
                f"an additive mask holds 0 and -inf (or the minimum of its dtype); {came} with "
                f"{tensor[other][0].item():g}, a bias on the scores, which is a Position's to add"
                + _meant(tensor[other])
            )
        return _dense(allowed) if tensor.ndim == 2 else _of_four_axes(allowed, came)


# By name: the masks that hold tensors extend the contract, and that has these forms.


def _dense(allowed: Tensor) -> Any:
    return import_module("variants.masks.dense").Dense(allowed)


def _padding(keep: Tensor) -> Any:
    return import_module("variants.masks.padding").Padding(keep=keep)


def _came(tensor: Tensor) -> str:
    a_tensor("a mask", tensor)
    return f"got {tensor.dtype} of shape {tuple(tensor.shape)}"


def _meant(others: Tensor) -> str:
    """What the numbers of a float mask may have been meant to be."""
    if others.eq(1).all():
        return " (0.0 and 1.0, 1 = keep: from_keep(tensor.long()))"
    if others.le(-1000).all():
        return (
            ' (for -inf, which scores cannot beat: tensor.masked_fill(tensor < 0, float("-inf")))'
        )
    return ""


def _ignored(tensor: Tensor) -> str:
    """What came, once it is known to be boolean."""
    if a_tensor("a mask", tensor).dtype != torch.bool:
        other = "from_additive" if tensor.dtype.is_floating_point else "from_keep, if 1 = keep"
        raise TypeError(
            f"an ignore mask is bool, True = ignore; {_came(tensor)} "
            f"({'added to the scores' if other == 'from_additive' else 'numbers'}: {other})"
        )
    return _came(tensor)


def _of_four_axes(allowed: Tensor, came: str) -> Any:
    """Dense, or the padding that a tensor of shape (batch, 1, 1, key) is."""
    if allowed.ndim != 4:
        raise ValueError(
            "the axes are two, or the four of (batch, heads or 1, query, key), since three may "
            f"mean a batch or heads; {came} (of nn.MultiheadAttention: from_ignore)"
        )
    if allowed.shape[1:3] == (1, 1):
        return _padding(rearrange(allowed, "batch 1 1 key -> batch key"))
    return _dense(allowed)


def _padding_alone(mask: Forms, allowed: Tensor, batch: int, keys: int) -> Tensor | None:
    """Which tokens are real, where the mask says this and nothing else."""
    keep = mask.keep(batch, keys, allowed.device)
    if keep is None or allowed.shape[1:3] != (1, 1):
        return None
    same = torch.equal(allowed.expand(batch, 1, 1, keys)[:, 0, 0], keep)
    return keep if same else None
