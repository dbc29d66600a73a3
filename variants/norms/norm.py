"""The contract of normalization layers."""

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor

from variants.dims import Dims
from variants.part import Part


class Norm(Part):
    """A layer that brings each token's vector to a standard size: (…, d_model) to (…, d_model)."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims

    @abstractmethod
    def forward(self, x: Float[Tensor, "*any d_model"]) -> Float[Tensor, "*any d_model"]:
        """Normalize the last axis."""


def positive(eps: float) -> float:
    """The eps of a norm.

    Raises:
        ValueError: If eps is not positive.
    """
    if eps <= 0:
        raise ValueError(f"eps must be positive; got eps={eps}")
    return eps
