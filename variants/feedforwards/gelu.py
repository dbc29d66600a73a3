"""A feed-forward layer with GELU."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from variants.feedforwards.feedforward import Plain


class GELU(Plain):
    """GELU(W₁x + b₁)W₂ + b₂, where GELU(u) = u·Φ(u) with the exact normal distribution function Φ.

    Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415);
    `gelu_tanh` is its tanh approximation.

    Args:
        d_ff: Hidden width; None means 4 d_model.
    """

    name = "gelu"

    def activate(self, hidden: Float[Tensor, "*any d_ff"]) -> Float[Tensor, "*any d_ff"]:
        return F.gelu(hidden)
