"""The contract of initializers."""

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from variants.dims import Dims
from variants.part import Part


class Initializer(Part):
    """How the matrices, biases and embedding tables of an encoder start.

    It fills linear maps and embeddings. Each call gets a generator of its own, seeded by the path
    of the parameter, so that encoders share the weights of what they have in common.
    """

    depth_scaled: ClassVar[bool] = False
    """True: scales by depth itself, so that the gain of a norm placement does not count."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims

    @abstractmethod
    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        """Fill the weight of a linear map, shape (out, in)."""

    @abstractmethod
    def table(self, weight: Tensor, generator: torch.Generator) -> None:
        """Fill an embedding table, shape (rows, d_model)."""

    def gain(self, path: str) -> float:
        """A factor on the matrix at this path, such as `blocks.0.attention.to_v`."""
        return 1.0

    def bias(self, bias: Tensor, fan_in: int, generator: torch.Generator) -> None:
        """Fill the bias of a linear map with fan_in inputs."""
        nn.init.zeros_(bias)
