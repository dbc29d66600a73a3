import torch
from einops import einsum, rearrange
from torch import nn

from variants.dims import Dims
from variants.readouts.readout import Readout
from variants.shapes import Pooled, Real, Stream


class AttentionPooling(Readout):
    """Σ aₜ hₜ with a = softmax(q·h/√d_model) over the real tokens, and one learned query q.

    q starts at 0, where the readout is the mean. The weights are held in float32 or better.

    Source: Lin et al. 2017 (arXiv:1703.03130); Lee et al. 2019 (arXiv:1810.00825) with one seed.
    """

    name = "attention_pooling"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.query = nn.Parameter(torch.zeros(dims.d_model))

    def forward(self, hidden: Stream, keep: Real | None) -> Pooled:
        exact = torch.promote_types(hidden.dtype, torch.float32)
        query = self.query.to(exact) * self.dims.d_model**-0.5
        scores = einsum(hidden.to(exact), query, "batch seq d_model, d_model -> batch seq")
        if keep is not None:
            # A sequence without real tokens has zero states, so any weights read its 0.
            some = rearrange(keep.any(dim=-1), "batch -> batch 1")
            scores = scores.masked_fill(keep.logical_not() & some, float("-inf"))
        weights = scores.softmax(dim=-1).to(hidden.dtype)
        return einsum(weights, hidden, "batch seq, batch seq d_model -> batch d_model")
