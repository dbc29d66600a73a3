import torch.nn.functional as F

from variants.feedforwards.feedforward import Plain
from variants.shapes import Hidden


class ReLU(Plain):
    """ReLU(W₁x + b₁)W₂ + b₂, where ReLU(u) = max(0, u).

    Source: Vaswani et al. 2017, section 3.3 (arXiv:1706.03762).

    Args:
        d_ff: Hidden width; None means 4 d_model.
    """

    name = "relu"

    def activate(self, hidden: Hidden) -> Hidden:
        return F.relu(hidden)
