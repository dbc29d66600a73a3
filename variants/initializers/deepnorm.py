import torch
from torch import Tensor, nn

from variants.dims import Dims
from variants.initializers.initializer import Initializer


class DeepNormInit(Initializer):
    """Xavier normal, times β = (8N)^(-1/4) where a map carries values; biases 0.

    For N layers, the feed-forward matrices and the value and output maps of the attention have
    standard deviation β·√(2/(in + out)), queries, keys and all others √(2/(in + out)); tables are
    normal with variance 1/d_model. The placement of that name applies the same β by itself.

    Source: Wang et al. 2022, figure 2 (arXiv:2203.00555), for an encoder without a decoder.
    """

    name = "deepnorm"
    depth_scaled = True

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.beta = (8 * dims.n_layers) ** -0.25

    def gain(self, path: str) -> float:
        scaled = (".feedforward.", ".attention.to_v", ".attention.to_model")
        return self.beta if any(part in path for part in scaled) else 1.0

    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.xavier_normal_(weight, generator=generator)

    def table(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.normal_(weight, std=self.dims.d_model**-0.5, generator=generator)
