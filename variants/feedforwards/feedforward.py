"""The contract of feed-forward layers."""

from abc import abstractmethod
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from variants.dims import Dims
from variants.part import Part


class FeedForward(Part):
    """The layer of a block that works on each token alone: (…, d_model) to (…, d_model).

    The map that writes into the residual stream is called `to_model`, as it is in the attention:
    initializers that scale by depth know it by that name.
    """

    absent: ClassVar[bool] = False
    """True: a block has no such sublayer, nor the norms that would join it."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims

    @abstractmethod
    def forward(self, x: Float[Tensor, "*any d_model"]) -> Float[Tensor, "*any d_model"]:
        """Transform every token by itself."""


def width(d_ff: int | None, default: int) -> int:
    """The hidden width: what was asked for, or the default of the layer.

    Raises:
        ValueError: If d_ff is not positive.
    """
    if d_ff is None:
        return default
    if d_ff < 1:
        raise ValueError(f"d_ff must be at least 1; got d_ff={d_ff}")
    return d_ff
