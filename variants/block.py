"""One layer of an encoder."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from variants.feedforwards.feedforward import FeedForward
from variants.multihead import MultiHeadAttention
from variants.norm_placements.norm_placement import NormPlacement
from variants.shapes import Stream


class Block(nn.Module):
    """Attention, then a feed-forward layer, joined to the stream by norm placements.

    Source: Vaswani et al. 2017, section 3.1 (arXiv:1706.03762).

    Args:
        attention: The first sublayer.
        feedforward: The second sublayer; None where there is none.
        joins: In order, what joins the sublayers; each takes as many as it says.
        dropout: Share of each sublayer's output dropped in training.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        feedforward: FeedForward | None,
        joins: Sequence[NormPlacement],
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention, self.feedforward = attention, feedforward
        self.joins = nn.ModuleList(joins)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Stream, *attention_inputs: Any) -> Stream:
        """The stream after both sublayers; the other inputs go to the attention."""
        # Lambdas, since functions with annotations cost the tests a check of types each time.
        waiting = [lambda y: self.dropout(self.attention(y, *attention_inputs))]
        if self.feedforward is not None:
            feedforward = self.feedforward
            waiting += [lambda y: self.dropout(feedforward(y))]
        for join in self.joins:
            count: Any = join.sublayers
            x = join(x, *waiting[:count])
            waiting = waiting[count:]
        return x
