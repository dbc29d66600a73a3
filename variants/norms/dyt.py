import torch
from torch import nn

from variants.dims import Dims
from variants.norms.norm import Norm
from variants.part import positive
from variants.shapes import States


class DyT(Norm):
    """tanh(αx) · weight + bias, with one learned α: no statistics at all.

    Source: Zhu et al. 2025 (arXiv:2503.10622).

    Args:
        alpha: Where α starts.

    Raises:
        ValueError: If alpha is not positive.
    """

    name = "dyt"

    def __init__(self, dims: Dims, alpha: float = 0.5) -> None:
        super().__init__(dims)
        self.alpha = nn.Parameter(torch.tensor(float(positive("alpha", alpha))))
        self.weight = nn.Parameter(torch.ones(dims.d_model))
        self.bias = nn.Parameter(torch.zeros(dims.d_model)) if dims.bias else None

    def forward(self, x: States) -> States:
        squashed = (self.alpha * x).tanh() * self.weight
        return squashed if self.bias is None else squashed + self.bias
