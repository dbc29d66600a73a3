"""Multi-head attention: projections, position seams and an attention backend."""

from typing import Any

from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from variants.attentions.attention import Attention
from variants.dims import Dims
from variants.positions.position import Position


class MultiHeadAttention(nn.Module):
    """Project to queries, keys and values, mix the values in each head, project back.

    Head h owns the channels h·d_head … (h+1)·d_head - 1 of each projection.

    Source: Vaswani et al. 2017, section 3.2.2 (arXiv:1706.03762).

    Args:
        dims: Sizes.
        dropout: Share of the attention weights dropped in training.
    """

    def __init__(self, dims: Dims, dropout: float = 0.0) -> None:
        super().__init__()
        self.dims, self.dropout = dims, dropout
        heads_width = dims.n_heads * dims.d_head
        self.to_q = nn.Linear(dims.d_model, heads_width, bias=dims.bias)
        self.to_k = nn.Linear(dims.d_model, heads_width, bias=dims.bias)
        self.to_v = nn.Linear(dims.d_model, heads_width, bias=dims.bias)
        self.to_model = nn.Linear(heads_width, dims.d_model, bias=dims.bias)

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        position: Position,
        index: Int[Tensor, "#batch seq"],
        attention: Attention,
        prepared: Any,
        seen: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch seq d_model"]:
        """Attend within x.

        Args:
            x: The token states.
            position: Turns queries and keys.
            index: The position of each token.
            attention: The backend.
            prepared: What the backend prepared for this forward.
            seen: Where to append the weights, (batch, heads, query, key) before dropout; the
                backend must be one that can show them.
        """
        q, k, v = (self._split(to(x)) for to in (self.to_q, self.to_k, self.to_v))
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
        return rearrange(
            projected,
            "batch seq (heads d_head) -> batch heads seq d_head",
            heads=self.dims.n_heads,
        )
