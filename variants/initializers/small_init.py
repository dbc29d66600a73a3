import torch
from torch import Tensor, nn

from variants.initializers.initializer import Initializer


class SmallInit(Initializer):
    """Matrices and tables normal with variance 2/(5 d_model), biases 0.

    That is the Xavier normal variance of a map from d_model to 4 d_model, for every matrix.

    Source: Nguyen and Salazar 2019, section 2.2 (arXiv:1910.05895); GPT-NeoX fills tables alike.
    """

    name = "small_init"

    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, std=(0.4 / self.dims.d_model) ** 0.5, generator=generator)

    def table(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, std=(0.4 / self.dims.d_model) ** 0.5, generator=generator)
