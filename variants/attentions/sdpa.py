"""torch's fused attention."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from variants.attentions.attention import Attention
from variants.masks.causal import Causal
from variants.masks.mask import Mask, Sizes
from variants.positions.position import Position
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex, Scores


@dataclass(frozen=True)
class Prepared:
    """What the layers of one forward share.

    `added` is a boolean mask, or what is added to the scores (-inf where not allowed); None where
    the kernel needs neither. `empty` marks queries that may attend to nothing.
    """

    position: Position
    q_index: QueryIndex
    k_index: KeyIndex
    causal: bool
    added: (
        Bool[Tensor, "#batch #heads #query #key"]
        | Float[Tensor, "#batch #heads #query #key"]
        | None
    )
    empty: Bool[Tensor, "#batch #heads #query 1"] | None


class SDPA(Attention):
    """`torch.nn.functional.scaled_dot_product_attention`, with its fused kernels.

    An exactly causal mask without a bias reaches the causal kernel and is never built; a full mask
    without a bias needs no mask at all.

    Source: torch's documentation of `scaled_dot_product_attention`, 2.13.
    """

    name = "sdpa"

    def prepare(
        self, mask: Mask, position: Position, q_index: QueryIndex, k_index: KeyIndex, sizes: Sizes
    ) -> Prepared:
        bias = position.bias(q_index, k_index)
        # The kernel wants plain True, and within a captured graph two sizes compare to a symbol.
        if bias is None and type(mask) is Causal and sizes.queries == sizes.keys:
            return Prepared(position, q_index, k_index, True, None, None)
        if mask.unrestricted:
            return Prepared(position, q_index, k_index, False, bias, None)
        allowed = mask.dense(*sizes.shape, device=q_index.device)
        # Kernels disagree about rows that allow nothing, so they see such rows unmasked, and the
        # outputs of these rows are set to 0.
        empty = ~allowed.any(dim=-1, keepdim=True)
        allowed = allowed | empty
        added = allowed if bias is None else bias.masked_fill(~allowed, float("-inf"))
        return Prepared(position, q_index, k_index, False, added, empty)

    def forward(
        self, q: Queries, k: Keys, v: Keys, prepared: Prepared, dropout: float = 0.0
    ) -> Queries:
        content = prepared.position.scores(q, k, prepared.q_index, prepared.k_index)
        added, causal = prepared.added, prepared.causal
        if content is not None:
            added, causal = self._with_content(content, prepared), False
        if added is not None and added.dtype != torch.bool:
            added = added.to(q.dtype)
        mixed = F.scaled_dot_product_attention(
            q, k, v, attn_mask=added, dropout_p=dropout, is_causal=causal
        )
        if added is None:
            return mixed.masked_fill(_lost(q, k), torch.nan)
        return mixed if prepared.empty is None else mixed.masked_fill(prepared.empty, 0.0)

    def _with_content(self, content: Scores, prepared: Prepared) -> Scores:
        if prepared.causal:
            allowed = Causal().dense(*content.shape, device=content.device)
            return content.masked_fill(~allowed, float("-inf"))
        if prepared.added is None:
            return content
        if prepared.added.dtype == torch.bool:
            return content.masked_fill(~prepared.added, float("-inf"))
        return content + prepared.added


@torch.no_grad()
def _lost(q: Queries, k: Keys) -> Bool[Tensor, "batch heads query 1"]:
    """Queries whose score with the first key, which each of them may attend to, is NaN.

    Without a mask, torch's kernel for the CPU makes 0 of a row of NaN alone, and nobody would
    notice. Scores are summed in float32 at least, as the kernel does: in float16 two finite
    products may overflow to inf - inf.
    """
    first = k[:, :, :1].sum(dim=2, keepdim=True)  # 0 where there are no keys at all
    wide = torch.promote_types(q.dtype, torch.float32)
    return (q.to(wide) * first.to(wide)).sum(dim=-1, keepdim=True).isnan()
