"""The contract of attention backends."""

from abc import abstractmethod
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from variants.dims import Dims
from variants.masks.mask import Mask, Sizes
from variants.part import Part
from variants.positions.position import Position


class Attention(Part):
    """How queries mix the values of the keys: softmax(q·k/√d_head + bias + scores) v.

    A query attends to the keys that the mask allows; one that may attend to nothing gets output
    0, weights 0 and gradient 0. `prepare` runs once a forward and works out what all layers share;
    the value that it returns lives no longer than that forward.
    """

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims

    @abstractmethod
    def prepare(
        self,
        mask: Mask,
        position: Position,
        q_index: Int[Tensor, "#batch query"],
        k_index: Int[Tensor, "#batch key"],
        sizes: Sizes,
    ) -> Any:
        """What the layers of one forward share, such as the lowered mask and the bias."""

    @abstractmethod
    def forward(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
        v: Float[Tensor, "batch heads key d_head"],
        prepared: Any,
        dropout: float = 0.0,
    ) -> Float[Tensor, "batch heads query d_head"]:
        """The mixed values; `dropout` is the share of weights to drop, 0 in evaluation."""

    def with_weights(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
        v: Float[Tensor, "batch heads key d_head"],
        prepared: Any,
        dropout: float = 0.0,
    ) -> tuple[Float[Tensor, "batch heads query d_head"], Float[Tensor, "batch heads query key"]]:
        """The mixed values, and the weights before dropout.

        Raises:
            NotImplementedError: If the backend never holds its weights; `explicit` does.
        """
        raise NotImplementedError(f"{self.name} never holds its weights; explicit does")
