import torch
from einops import einsum

from variants.readouts.readout import Readout
from variants.shapes import Pooled, Real, Stream


class WeightedMean(Readout):
    """Σ wₜ hₜ with wₜ = t / Σ t, where t = 1, 2, … counts the real tokens.

    For causal encoders, whose later tokens have seen more.

    Source: Muennighoff 2022, section 3 (arXiv:2202.08904).
    """

    name = "weighted_mean"

    def forward(self, hidden: Stream, keep: Real | None) -> Pooled:
        if keep is None:
            keep = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
        exact = torch.promote_types(hidden.dtype, torch.float32)
        rank = keep.cumsum(dim=-1).to(exact) * keep
        weights = (rank / rank.sum(dim=-1, keepdim=True).clamp(min=1)).to(hidden.dtype)
        return einsum(weights, hidden, "batch seq, batch seq d_model -> batch d_model")
