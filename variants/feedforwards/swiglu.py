"""A gated feed-forward layer with SiLU."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from variants.dims import Dims
from variants.feedforwards.feedforward import FeedForward, width


class SwiGLU(FeedForward):
    """W₂(SiLU(W₁x) ⊙ Vx), where SiLU(u) = u/(1 + exp(-u)).

    Three matrices instead of two. Without d_ff the hidden width is round(8/3 d_model), which
    matches the weights of a plain layer of width 4 d_model; a given d_ff is taken as it is.

    Source: Shazeer 2020 (arXiv:2002.05202).

    Args:
        d_ff: Hidden width; None means round(8/3 d_model).
    """

    name = "swiglu"

    def __init__(self, dims: Dims, d_ff: int | None = None) -> None:
        super().__init__(dims)
        self.d_ff = width(d_ff, default=round(8 * dims.d_model / 3))
        self.to_gate = nn.Linear(dims.d_model, self.d_ff, bias=dims.bias)
        self.to_hidden = nn.Linear(dims.d_model, self.d_ff, bias=dims.bias)
        self.to_model = nn.Linear(self.d_ff, dims.d_model, bias=dims.bias)

    def forward(self, x: Float[Tensor, "*any d_model"]) -> Float[Tensor, "*any d_model"]:
        return self.to_model(F.silu(self.to_gate(x)) * self.to_hidden(x))
