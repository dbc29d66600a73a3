"""The contract of normalization layers."""

from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from variants.dims import Dims
from variants.part import Part
from variants.shapes import Real, States


class Norm(Part):
    """A layer that brings each token's vector to a standard size: (…, d_model) to (…, d_model).

    A norm whose statistics span tokens reads in `real` which of them are no padding; the encoder
    sets it for the time of a forward, and None says that all are real.

    States whose squares overflow, beyond 1e19 in float32, come out as NaN: training stops there.
    """

    spans_tokens: ClassVar[bool] = False
    """True: in training, the tokens of a batch influence one another."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims
        self.real: Real | None = None

    @abstractmethod
    def forward(self, x: States) -> States:
        """Normalize the last axis."""


def inverse_root(square: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """1 / √square, and NaN where the squares of the states overflowed.

    The 0 that infinity would give turns lost states into ordinary ones, and nobody would notice.
    """
    return square.rsqrt().masked_fill(square.isinf(), torch.nan)


def over_root_mean_square(
    x: Float[Tensor, "*any width"], eps: float
) -> Float[Tensor, "*any width"]:
    """x / √(mean(x²) + eps) over the last axis; the mean square is held in float32 or better."""
    exact = x.to(torch.promote_types(x.dtype, torch.float32))
    square = exact.square().mean(dim=-1, keepdim=True) + eps
    return (exact * inverse_root(square)).to(x.dtype)
