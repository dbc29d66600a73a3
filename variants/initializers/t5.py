import torch
from torch import Tensor, nn

from variants.initializers.initializer import Initializer


class T5(Initializer):
    """Matrices normal with variance 1/in, queries 1/(in·d_head); tables with variance 1; biases 0.

    Queries start small because T5 does not divide scores by √d_head: it goes with the scale none.

    Source: Raffel et al. 2020 (arXiv:1910.10683), and the authors' code.
    """

    name = "t5"

    def gain(self, path: str) -> float:
        return self.dims.d_head**-0.5 if path.endswith(".attention.to_q") else 1.0

    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, std=weight.shape[1] ** -0.5, generator=generator)

    def table(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, generator=generator)
