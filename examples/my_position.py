"""A position encoding of your own: scores fall with the logarithm of the distance.

python -m studies.extrapolation --import examples/my_position.py --arms mine,rope
"""

import torch
from einops import rearrange

from registry import register
from variants.positions import Position


@register
class LogDistance(Position):
    """bias(i, j) = -log(1 + |i - j|), the same in every head."""

    name = "mine"
    sees_direction = False
    distance_only = True

    def bias(self, q_index: torch.Tensor, k_index: torch.Tensor) -> torch.Tensor:
        query = rearrange(q_index, "batch query -> batch 1 query 1")
        key = rearrange(k_index, "batch key -> batch 1 1 key")
        distance = (query - key).abs().float()
        return -distance.log1p().expand(-1, self.dims.n_heads, -1, -1)
