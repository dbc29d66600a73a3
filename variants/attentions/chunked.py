"""Attention in blocks of queries: memory linear in the length."""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from variants.attentions._softmax import mixed_values, softmax_weights
from variants.attentions.attention import Attention
from variants.masks.causal import Causal
from variants.masks.mask import Mask, Sizes
from variants.positions.position import Position
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex

BLOCK = 128
"""Queries in a block."""


@dataclass(frozen=True)
class Prepared:
    """What the layers of one forward share: the rules, from which each block takes its rows."""

    mask: Mask
    position: Position
    q_index: QueryIndex
    k_index: KeyIndex
    sizes: Sizes

    @property
    def causal(self) -> bool:
        """Does no query see a key behind it?"""
        return type(self.mask) is Causal and self.sizes.queries == self.sizes.keys

    def allowed(self, rows: slice) -> Bool[Tensor, "#batch #heads #query #key"]:
        """The rows of the mask for a block of queries."""
        sizes = self.sizes
        every = torch.arange(rows.start, rows.stop, device=self.q_index.device)
        return self.mask.rows(every, *sizes.shape)


class Chunked(Attention):
    """Softmax attention, 128 queries at a time, which never holds all scores at once.

    Mask, bias and scores are worked out block by block, and the backward pass works them out again
    (gradient checkpointing), so that memory grows as the length, forward and backward, whatever
    the mask and the position add, at the cost of computing each block twice. Under an exactly
    causal mask a block leaves out the keys behind it. Dropout drops each weight by itself, from
    random numbers drawn block by block, which differ from those of other backends.

    At 4,096 tokens and four heads, forward and backward, it held 0.06 times what `sdpa` did with
    the bias of T5 and padding, and 0.48 times under a causal mask with padding. Where mask and
    position leave `sdpa` the fused kernel, whose memory is linear too, it held twice as much
    (`benchmarks/attention_memory.py`).

    Source: Rabe and Staats 2021 (arXiv:2112.05682); Chen et al. 2016 (arXiv:1604.06174) for the
    second computation.
    """

    name = "chunked"

    def prepare(
        self, mask: Mask, position: Position, q_index: QueryIndex, k_index: KeyIndex, sizes: Sizes
    ) -> Prepared:
        return Prepared(mask, position, q_index, k_index, sizes)

    def forward(
        self, q: Queries, k: Keys, v: Keys, prepared: Prepared, dropout: float = 0.0
    ) -> Queries:
        # Counted, not stepped through: one captured graph then serves all lengths of that count.
        count = -(-q.shape[2] // BLOCK)
        if count == 1 or not torch.is_grad_enabled():
            run = self._mix
        else:
            run = partial(checkpoint, self._mix, use_reentrant=False)
        blocks = [q] if count == 1 else q.split(BLOCK, dim=2)
        mixed = [
            run(block, k, v, prepared, number * BLOCK, dropout)
            for number, block in enumerate(blocks)
        ]
        return mixed[0] if count == 1 else torch.cat(mixed, dim=2)

    def _mix(
        self,
        q: Float[Tensor, "batch heads block d_head"],
        k: Keys,
        v: Keys,
        prepared: Prepared,
        start: int,
        dropout: float,
    ) -> Float[Tensor, "batch heads block d_head"]:
        rows, position = slice(start, start + q.shape[2]), prepared.position
        allowed = prepared.allowed(rows)
        if prepared.causal:
            k, v, allowed = k[:, :, : rows.stop], v[:, :, : rows.stop], allowed[..., : rows.stop]
        q_index, k_index = prepared.q_index[:, rows], prepared.k_index[:, : k.shape[2]]
        bias, content = position.bias(q_index, k_index), position.scores(q, k, q_index, k_index)
        weights = softmax_weights(q, k, allowed, bias, content)
        return mixed_values(weights, v, dropout)
