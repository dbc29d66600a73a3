"""A feed-forward layer with GELU."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from variants.dims import Dims
from variants.feedforwards.feedforward import FeedForward, width


class GELU(FeedForward):
    """GELU(W₁x + b₁)W₂ + b₂, where GELU(u) = u·Φ(u) with the exact normal distribution function Φ.

    Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415); not its tanh approximation.

    Args:
        d_ff: Hidden width; None means 4 d_model.
    """

    name = "gelu"

    def __init__(self, dims: Dims, d_ff: int | None = None) -> None:
        super().__init__(dims)
        self.d_ff = width(d_ff, default=4 * dims.d_model)
        self.to_hidden = nn.Linear(dims.d_model, self.d_ff, bias=dims.bias)
        self.to_model = nn.Linear(self.d_ff, dims.d_model, bias=dims.bias)

    def forward(self, x: Float[Tensor, "*any d_model"]) -> Float[Tensor, "*any d_model"]:
        return self.to_model(F.gelu(self.to_hidden(x)))
