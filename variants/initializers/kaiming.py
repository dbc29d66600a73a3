import torch
from torch import Tensor, nn

from variants.initializers.initializer import Initializer


class Kaiming(Initializer):
    """Matrices normal with variance 2/in, which keeps the size of states through ReLU; biases 0.

    Tables are normal with variance 1/d_model.

    Source: He et al. 2015, equation 10 (arXiv:1502.01852).
    """

    name = "kaiming"

    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.kaiming_normal_(weight, nonlinearity="relu", generator=generator)

    def table(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, std=self.dims.d_model**-0.5, generator=generator)
