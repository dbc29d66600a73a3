"""The contract of norm placements."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from variants.dims import Dims
from variants.norms import Norm
from variants.part import Part


class NormPlacement(Part):
    """How a sublayer joins the residual stream.

    Each sublayer has a placement of its own, which makes the norms that it needs.
    """

    final_norm: ClassVar[bool] = False
    """True: the stream that leaves the last block is normalized once more."""

    def __init__(self, dims: Dims, make_norm: Callable[[], Norm]) -> None:
        super().__init__()
        self.dims = dims

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "batch seq d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch seq d_model"]:
        """The stream after the sublayer has joined it."""
