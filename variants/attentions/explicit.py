"""Attention written out: the reference."""

from dataclasses import dataclass

import torch.nn.functional as F
from einops import einsum
from jaxtyping import Bool, Float, Int
from torch import Tensor

from variants.attentions._softmax import softmax_weights
from variants.attentions.attention import Attention
from variants.masks.mask import Mask, Sizes
from variants.positions.position import Position


@dataclass(frozen=True)
class Prepared:
    """What the layers of one forward share."""

    position: Position
    q_index: Int[Tensor, "#batch query"]
    k_index: Int[Tensor, "#batch key"]
    allowed: Bool[Tensor, "#batch #heads #query #key"]
    bias: Float[Tensor, "#batch heads query key"] | None


class Explicit(Attention):
    """Softmax attention as its formula reads: the only backend that can return its weights.

    Scores and weights are held in float32 or better.

    Source: Vaswani et al. 2017, equation 1 (arXiv:1706.03762).
    """

    name = "explicit"

    def prepare(
        self,
        mask: Mask,
        position: Position,
        q_index: Int[Tensor, "#batch query"],
        k_index: Int[Tensor, "#batch key"],
        sizes: Sizes,
    ) -> Prepared:
        allowed = mask.dense(
            sizes.batch, sizes.heads, sizes.queries, sizes.keys, device=q_index.device
        )
        bias = position.bias(q_index, k_index)
        return Prepared(position, q_index, k_index, allowed, bias)

    def weights(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
        prepared: Prepared,
    ) -> Float[Tensor, "batch heads query key"]:
        """The share of each key in each query's output, before dropout."""
        content = prepared.position.scores(q, k, prepared.q_index, prepared.k_index)
        return softmax_weights(q, k, prepared.allowed, prepared.bias, content)

    def with_weights(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
        v: Float[Tensor, "batch heads key d_head"],
        prepared: Prepared,
        dropout: float = 0.0,
    ) -> tuple[Float[Tensor, "batch heads query d_head"], Float[Tensor, "batch heads query key"]]:
        weights = self.weights(q, k, prepared)
        mixed = einsum(
            F.dropout(weights, dropout).to(v.dtype),
            v,
            "batch heads query key, batch heads key d_head -> batch heads query d_head",
        )
        return mixed, weights

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
        v: Float[Tensor, "batch heads key d_head"],
        prepared: Prepared,
        dropout: float = 0.0,
    ) -> Float[Tensor, "batch heads query d_head"]:
        return self.with_weights(q, k, v, prepared, dropout)[0]
