import torch
import torch.nn.functional as F
from torch import nn

from variants.dims import Dims
from variants.norms.norm import Norm
from variants.part import positive
from variants.shapes import States


class LayerNorm(Norm):
    """(x - mean) / √(variance + eps) · weight + bias, over the channels of each token.

    The variance is the biased one. Statistics are held in float32 or better.

    Source: Ba et al. 2016 (arXiv:1607.06450).
    """

    name = "layernorm"

    def __init__(self, dims: Dims, eps: float = 1e-5) -> None:
        super().__init__(dims)
        self.eps = positive("eps", eps)
        self.weight = nn.Parameter(torch.ones(dims.d_model))
        self.bias = nn.Parameter(torch.zeros(dims.d_model)) if dims.bias else None

    def forward(self, x: States) -> States:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)
