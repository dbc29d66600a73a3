import torch
from torch import nn

from variants.dims import Dims
from variants.norms.norm import Norm, over_root_mean_square
from variants.part import positive
from variants.shapes import States


class RMSNorm(Norm):
    """x / √(mean(x²) + eps) · weight, over the channels of each token.

    The mean square is held in float32 or better.

    Source: Zhang and Sennrich 2019 (arXiv:1910.07467).
    """

    name = "rmsnorm"

    def __init__(self, dims: Dims, eps: float = 1e-5) -> None:
        super().__init__(dims)
        self.eps = positive("eps", eps)
        self.weight = nn.Parameter(torch.ones(dims.d_model))

    def forward(self, x: States) -> States:
        return over_root_mean_square(x, self.eps) * self.weight
