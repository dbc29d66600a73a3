import torch
from torch import Tensor, nn

from variants.dims import Dims
from variants.initializers.initializer import Initializer
from variants.part import positive


class Normal(Initializer):
    """Matrices and tables normal with standard deviation std, biases 0.

    Source: Devlin et al. 2019 (arXiv:1810.04805) and Radford et al. 2018 use std = 0.02.

    Raises:
        ValueError: If std is not positive.
    """

    name = "normal"

    def __init__(self, dims: Dims, std: float = 0.02) -> None:
        super().__init__(dims)
        self.std = positive("std", std)

    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, std=self.std, generator=generator)

    def table(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, std=self.std, generator=generator)
