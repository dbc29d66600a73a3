import torch.nn.functional as F

from variants.feedforwards.feedforward import Plain
from variants.shapes import Hidden


class SiLU(Plain):
    """SiLU(W₁x + b₁)W₂ + b₂, where SiLU(u) = u/(1 + exp(-u)), also called swish.

    Source: Elfwing et al. 2017 (arXiv:1702.03118); Ramachandran et al. 2017 (arXiv:1710.05941).

    Args:
        d_ff: Hidden width; None means 4 d_model.
    """

    name = "silu"

    def activate(self, hidden: Hidden) -> Hidden:
        return F.silu(hidden)
