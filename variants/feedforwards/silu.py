"""A feed-forward layer with SiLU."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from variants.feedforwards.feedforward import Plain


class SiLU(Plain):
    """SiLU(W₁x + b₁)W₂ + b₂, where SiLU(u) = u/(1 + exp(-u)), also called swish.

    Source: Elfwing et al. 2017 (arXiv:1702.03118); Ramachandran et al. 2017 (arXiv:1710.05941).

    Args:
        d_ff: Hidden width; None means 4 d_model.
    """

    name = "silu"

    def activate(self, hidden: Float[Tensor, "*any d_ff"]) -> Float[Tensor, "*any d_ff"]:
        return F.silu(hidden)
