"""Attention with linear biases."""

import torch
from einops import einsum, rearrange
from jaxtyping import Float, Int
from torch import Tensor

from variants.positions.position import Position


def slopes(n_heads: int) -> list[float]:
    """One slope a head: 2^(-8h/H) for h = 1..H where H is a power of two.

    Otherwise the slopes of the largest power of two below H, followed by every other slope of
    twice that number: the rule of the paper's own code, which keeps H slopes spread over the same
    range. The set changes with the head count, so a study of head counts must name its slopes.
    """
    power = 2 ** (n_heads.bit_length() - 1)
    known = [2 ** (-8 * head / power) for head in range(1, power + 1)]
    if power == n_heads:
        return known
    between = [2 ** (-8 * head / (2 * power)) for head in range(1, 2 * power + 1, 2)]
    return known + between[: n_heads - power]


class ALiBi(Position):
    """Attention with linear biases: a score loses slope x distance, the same on both sides.

    bias(i, j) = -slope_h |i - j|. The paper defines it under a causal mask; this is its symmetric
    form for encoders, which cannot tell left from right: reversing the input reverses the output.

    Source: Press et al. 2022, section 3 (arXiv:2108.12409); slopes as in the authors' code.
    """

    name = "alibi"
    sees_direction = False
    distance_only = True

    def bias(
        self, q_index: Int[Tensor, "batch query"], k_index: Int[Tensor, "batch key"]
    ) -> Float[Tensor, "batch heads query key"]:
        query = rearrange(q_index, "batch query -> batch query 1")
        key = rearrange(k_index, "batch key -> batch 1 key")
        distance = (query - key).abs().to(torch.float32)
        slope = torch.tensor(slopes(self.dims.n_heads), device=distance.device).to(distance)
        return -einsum(slope, distance, "heads, batch query key -> batch heads query key")
