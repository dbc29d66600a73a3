import torch.nn.functional as F

from variants.feedforwards.feedforward import Gated
from variants.shapes import Hidden


class GEGLU(Gated):
    """W₂(GELU(W₁x) ⊙ Vx), where GELU(u) = u·Φ(u) is the exact one.

    Source: Shazeer 2020 (arXiv:2002.05202).

    Args:
        d_ff: Width, as `match` reads it; None means 4 d_model.
        match: "width": d_ff is the hidden width. "parameters": the hidden width is round(2/3 d_ff),
            for the weights of a plain layer of width d_ff. None: "width" where d_ff is given,
            "parameters" where it is not.
    """

    name = "geglu"

    def activate(self, gate: Hidden) -> Hidden:
        return F.gelu(gate)
