import torch.nn.functional as F

from variants.feedforwards.feedforward import Plain
from variants.shapes import Hidden


class SquaredReLU(Plain):
    """r(W₁x + b₁)W₂ + b₂, where r(u) = max(0, u)².

    Source: So et al. 2021, section 4 (arXiv:2109.08668).

    Args:
        d_ff: Hidden width; None means 4 d_model.
    """

    name = "squared_relu"

    def activate(self, hidden: Hidden) -> Hidden:
        return F.relu(hidden).square()
