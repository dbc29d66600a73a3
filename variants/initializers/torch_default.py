import torch
from torch import Tensor, nn

from variants.initializers.initializer import Initializer


class TorchDefault(Initializer):
    """Matrices and biases uniform in ±1/√in, tables normal with unit variance.

    The distributions of torch's `nn.Linear` and `nn.Embedding`.

    Source: `reset_parameters` of both modules, torch 2.13.
    """

    name = "torch_default"

    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        bound = weight.shape[1] ** -0.5
        nn.init.uniform_(weight, -bound, bound, generator=generator)

    def table(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, generator=generator)

    def bias(self, bias: Tensor, fan_in: int, generator: torch.Generator) -> None:
        bound = fan_in**-0.5
        nn.init.uniform_(bias, -bound, bound, generator=generator)
