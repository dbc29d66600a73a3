import torch
from torch import Tensor, nn

from variants.dims import Dims
from variants.initializers.initializer import Initializer
from variants.part import positive


class GPT2(Initializer):
    """Normal with standard deviation std, divided by √(2N) in maps that write into the stream.

    For N layers of two sublayers, the variance of the stream then does not grow with depth. Those
    maps are each layer's two `to_model`. Tables have standard deviation std, biases are 0.

    Source: Radford et al. 2019, section 2.3 (GPT-2).

    Raises:
        ValueError: If std is not positive.
    """

    name = "gpt2"
    depth_scaled = True

    def __init__(self, dims: Dims, std: float = 0.02) -> None:
        super().__init__(dims)
        self.std = positive("std", std)

    def gain(self, path: str) -> float:
        return (2 * self.dims.n_layers) ** -0.5 if path.endswith(".to_model") else 1.0

    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, std=self.std, generator=generator)

    def table(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, std=self.std, generator=generator)
