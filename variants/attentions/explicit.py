"""Attention written out: the reference."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from variants.attentions._softmax import mixed_values, softmax_weights
from variants.attentions.attention import Attention
from variants.masks.mask import Mask, Sizes
from variants.positions.position import Position
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex, Scores


@dataclass(frozen=True)
class Prepared:
    """What the layers of one forward share."""

    position: Position
    q_index: QueryIndex
    k_index: KeyIndex
    allowed: Bool[Tensor, "#batch #heads #query #key"]
    bias: Float[Tensor, "#batch heads query key"] | None


class Explicit(Attention):
    """Softmax attention as its formula reads: the only backend that can return its weights.

    Scores and weights are held in float32 or better.

    Source: Vaswani et al. 2017, equation 1 (arXiv:1706.03762).
    """

    name = "explicit"

    def prepare(
        self, mask: Mask, position: Position, q_index: QueryIndex, k_index: KeyIndex, sizes: Sizes
    ) -> Prepared:
        allowed = mask.dense(*sizes.shape, device=q_index.device)
        bias = position.bias(q_index, k_index)
        return Prepared(position, q_index, k_index, allowed, bias)

    def weights(self, q: Queries, k: Keys, prepared: Prepared) -> Scores:
        """The share of each key in each query's output, before dropout."""
        content = prepared.position.scores(q, k, prepared.q_index, prepared.k_index)
        return softmax_weights(q, k, prepared.allowed, prepared.bias, content)

    def with_weights(
        self, q: Queries, k: Keys, v: Keys, prepared: Prepared, dropout: float = 0.0
    ) -> tuple[Queries, Scores]:
        weights = self.weights(q, k, prepared)
        return mixed_values(weights, v, dropout), weights

    def forward(
        self, q: Queries, k: Keys, v: Keys, prepared: Prepared, dropout: float = 0.0
    ) -> Queries:
        return self.with_weights(q, k, v, prepared, dropout)[0]
