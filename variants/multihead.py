"""Multi-head attention: projections, position seams and an attention backend."""

from typing import Any

import torch
from einops import rearrange, repeat
from jaxtyping import Float, Int
from torch import Tensor, nn

from variants.attentions.attention import Attention, Heads
from variants.dims import Dims
from variants.positions.position import Position
from variants.shapes import Stream


class MultiHeadAttention(nn.Module):
    """Project to queries, keys and values, mix the values in each head, project back.

    Head h owns the channels h·d_head … (h+1)·d_head - 1 of each projection. Where there are fewer
    heads of keys and values, neighbouring heads of queries share one: keys and values are repeated
    before positions and backends see them.

    Backends and positions divide scores by √d_head; another scale is worked into the queries.

    Source: Vaswani et al. 2017, section 3.2.2 (arXiv:1706.03762).

    Args:
        dims: Sizes.
        dropout: Share of the attention weights dropped in training.
        heads: How queries, keys and values are made.
    """

    def __init__(self, dims: Dims, dropout: float = 0.0, heads: Heads | None = None) -> None:
        super().__init__()
        heads = heads or Heads(dims.n_heads)
        self.dims, self.dropout, self.heads = dims, dropout, heads
        width, kv_width = dims.n_heads * dims.d_head, heads.n_kv_heads * dims.d_head
        self.to_q = nn.Linear(dims.d_model, width, bias=dims.bias)
        self.to_k = nn.Linear(dims.d_model, kv_width, bias=dims.bias)
        self.to_v = nn.Linear(dims.d_model, kv_width, bias=dims.bias)
        self.to_model = nn.Linear(width, dims.d_model, bias=dims.bias)
        self.norm_q, self.norm_k = heads.norm(dims.d_head), heads.norm(dims.d_head)
        self.sharpness = nn.Parameter(torch.ones(dims.n_heads)) if heads.learned_scale else None

    def forward(
        self,
        x: Stream,
        position: Position,
        index: Int[Tensor, "#batch seq"],
        attention: Attention,
        prepared: Any,
        seen: list[Tensor] | None = None,
        factor: Float[Tensor, "#batch #heads seq 1"] | None = None,
    ) -> Stream:
        """Attend within x.

        Args:
            x: The token states.
            position: Turns queries and keys.
            index: The position of each token.
            attention: The backend.
            prepared: What the backend prepared for this forward.
            seen: Where to append the weights, (batch, heads, query, key) before dropout; the
                backend must be one that can show them.
            factor: What each query is multiplied by, besides its scale.
        """
        q, k, v = (self._split(to(x)) for to in (self.to_q, self.to_k, self.to_v))
        q, k = self._scaled(self.norm_q(q)), self.norm_k(k)
        q = q if factor is None else q * factor.to(q.dtype)
        q, k = position.rotate(q, k, index, index)
        dropout = self.dropout if self.training else 0.0
        if seen is None:
            mixed = attention(q, k, v, prepared, dropout)
        else:
            mixed, weights = attention.with_weights(q, k, v, prepared, dropout)
            seen.append(weights)
        return self.to_model(rearrange(mixed, "batch heads seq d_head -> batch seq (heads d_head)"))

    def _split(
        self, projected: Float[Tensor, "batch seq width"]
    ) -> Float[Tensor, "batch heads seq d_head"]:
        d_head, n_heads = self.dims.d_head, self.dims.n_heads
        split = rearrange(
            projected, "batch seq (heads d_head) -> batch heads seq d_head", d_head=d_head
        )
        if split.shape[1] == n_heads:
            return split
        group = n_heads // split.shape[1]
        return repeat(
            split, "batch heads seq d_head -> batch (heads group) seq d_head", group=group
        )

    def _scaled(
        self, q: Float[Tensor, "batch heads seq d_head"]
    ) -> Float[Tensor, "batch heads seq d_head"]:
        if self.sharpness is not None:
            return q * rearrange(self.sharpness, "heads -> heads 1 1")
        factor = self.heads.factor(self.dims.d_head)
        return q if factor == 1 else q * factor
