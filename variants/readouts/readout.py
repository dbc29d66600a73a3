"""The contract of readouts."""

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor

from variants.dims import Dims
from variants.part import Part
from variants.shapes import Real, Stream


class Readout(Part):
    """What is read from the final states: one vector a sequence, or one a token."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims

    @abstractmethod
    def forward(self, hidden: Stream, keep: Real | None) -> Float[Tensor, "batch *tokens d_model"]:
        """Read out; `keep` marks the real tokens, None says that all are.

        `hidden` is 0 where keep is False. A sequence without a real token reads 0.
        """
