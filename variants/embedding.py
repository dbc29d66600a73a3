"""Token embeddings."""

import torch
from torch import nn

from variants.dims import Dims
from variants.shapes import Stream, TokenIndex


class TokenEmbedding(nn.Module):
    """One learned vector per token id, times √d_model if `scale` is set.

    The vector of `pad_id` is zero and stays zero.

    Source: Vaswani et al. 2017, section 3.4 (arXiv:1706.03762), for the scale.
    """

    def __init__(
        self, vocab_size: int, dims: Dims, pad_id: int | None = None, scale: bool = True
    ) -> None:
        super().__init__()
        self.factor = dims.d_model**0.5 if scale else 1.0
        self.table = nn.Embedding(vocab_size, dims.d_model, padding_idx=pad_id)

    def clear_pad(self) -> None:
        """Set the vector of the pad id to zero."""
        if self.table.padding_idx is not None:
            with torch.no_grad():
                self.table.weight[self.table.padding_idx] = 0.0

    def forward(self, tokens: TokenIndex) -> Stream:
        return self.table(tokens) * self.factor
