import torch.nn.functional as F

from variants.feedforwards.feedforward import Plain
from variants.shapes import Hidden


class GELU(Plain):
    """GELU(W₁x + b₁)W₂ + b₂, where GELU(u) = u·Φ(u) with the exact normal distribution function Φ.

    Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415);
    `gelu_tanh` is its tanh approximation.

    Args:
        d_ff: Hidden width; None means 4 d_model.
    """

    name = "gelu"

    def activate(self, hidden: Hidden) -> Hidden:
        return F.gelu(hidden)
