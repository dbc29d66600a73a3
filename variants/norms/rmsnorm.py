"""Root-mean-square normalization."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from variants.dims import Dims
from variants.norms.norm import Norm, inverse_root, positive


class RMSNorm(Norm):
    """x / √(mean(x²) + eps) · weight, over the channels of each token.

    The mean square is held in float32 or better.

    Source: Zhang and Sennrich 2019 (arXiv:1910.07467).
    """

    name = "rmsnorm"

    def __init__(self, dims: Dims, eps: float = 1e-5) -> None:
        super().__init__(dims)
        self.eps = positive(eps)
        self.weight = nn.Parameter(torch.ones(dims.d_model))

    def forward(self, x: Float[Tensor, "*any d_model"]) -> Float[Tensor, "*any d_model"]:
        exact = x.to(torch.promote_types(x.dtype, torch.float32))
        square = exact.square().mean(dim=-1, keepdim=True) + self.eps
        return (exact * inverse_root(square)).to(x.dtype) * self.weight
