"""A feed-forward layer with ReLU."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from variants.dims import Dims
from variants.feedforwards.feedforward import FeedForward, width


class ReLU(FeedForward):
    """ReLU(W₁x + b₁)W₂ + b₂, where ReLU(u) = max(0, u).

    Source: Vaswani et al. 2017, section 3.3 (arXiv:1706.03762).

    Args:
        d_ff: Hidden width; None means 4 d_model.
    """

    name = "relu"

    def __init__(self, dims: Dims, d_ff: int | None = None) -> None:
        super().__init__(dims)
        self.d_ff = width(d_ff, default=4 * dims.d_model)
        self.to_hidden = nn.Linear(dims.d_model, self.d_ff, bias=dims.bias)
        self.to_model = nn.Linear(self.d_ff, dims.d_model, bias=dims.bias)

    def forward(self, x: Float[Tensor, "*any d_model"]) -> Float[Tensor, "*any d_model"]:
        return self.to_model(F.relu(self.to_hidden(x)))
