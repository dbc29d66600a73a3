"""Linear attention: a kernel in place of the softmax."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from einops import einsum, rearrange, reduce
from jaxtyping import Bool, Float
from torch import Tensor

from variants.attentions._softmax import mixed_values
from variants.attentions.attention import Attention
from variants.dims import Dims
from variants.masks.causal import Causal
from variants.masks.mask import Mask, Sizes
from variants.masks.padding import Padding
from variants.positions.position import Position
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex, Real, Scores

BLOCK = 64
"""Queries in a block of causal attention."""


@dataclass(frozen=True)
class Prepared:
    """What the layers of one forward share: the two rules that can be honoured."""

    causal: bool
    keep: Bool[Tensor, "batch key"] | None


class LinearAttention(Attention):
    """Σⱼ φ(qᵢ)·φ(kⱼ) vⱼ / Σⱼ φ(qᵢ)·φ(kⱼ) with φ(u) = elu(u) + 1: no softmax attention.

    Sums over keys are taken once, or run along under a causal mask, so that time and memory grow as
    the length. It honours causal masks, padding and both together; other masks, and positions that
    add to scores or turn queries and keys, are refused, since it never forms scores. Sums are held
    in float32 or better. Its weights, for those who ask, are each term's share of the sum; dropout
    of weights drops such terms, for which it forms them all, in quadratic memory.

    Source: Katharopoulos et al. 2020 (arXiv:2006.16236).

    Args:
        n_kv_heads: Heads of keys and values; None: n_heads.
    """

    name = "linear"
    softmax = False

    def __init__(self, dims: Dims, n_kv_heads: int | None = None) -> None:
        super().__init__(dims, n_kv_heads=n_kv_heads)

    def check(self, mask: Mask, position: Position) -> None:
        _rules_of(mask)
        index, heads = torch.arange(2), torch.ones(1, self.dims.n_heads, 2, self.dims.d_head)
        index = rearrange(index, "seq -> 1 seq")
        turned = position.rotate(heads, heads, index, index)
        adds = (position.bias(index, index), position.scores(heads, heads, index, index))
        if any(one is not None for one in adds) or any(one is not heads for one in turned):
            raise ValueError(
                "linear attention forms no scores, so a position can reach it through the token "
                f"vectors alone; got {position.name}; take one that is added to the embeddings"
            )

    def prepare(
        self, mask: Mask, position: Position, q_index: QueryIndex, k_index: KeyIndex, sizes: Sizes
    ) -> Prepared:
        causal, paddings = _rules_of(mask)
        if causal and sizes.queries != sizes.keys:
            raise ValueError(
                "linear attention under a causal mask needs as many keys as queries; got "
                f"{sizes.queries} queries and {sizes.keys} keys"
            )
        kept = [padding.keep(sizes.batch, sizes.keys, q_index.device) for padding in paddings]
        keep = torch.stack(kept).all(dim=0) if kept else None
        return Prepared(causal, keep)

    def forward(
        self, q: Queries, k: Keys, v: Keys, prepared: Prepared, dropout: float = 0.0
    ) -> Queries:
        if dropout:
            return self.with_weights(q, k, v, prepared, dropout)[0]
        features, keys = _features(q), _features(k, prepared.keep)
        # A channel of ones beside the values sums up to the denominator.
        values = F.pad(v.to(keys.dtype), (0, 1), value=1.0)
        sums = (_running if prepared.causal else _whole)(features, keys, values)
        return _ratio(sums[..., :-1], sums[..., -1:]).to(v.dtype)

    def with_weights(
        self, q: Queries, k: Keys, v: Keys, prepared: Prepared, dropout: float = 0.0
    ) -> tuple[Queries, Scores]:
        terms = _terms(_features(q), _features(k, prepared.keep), prepared.causal)
        weights = _ratio(terms, reduce(terms, "b heads query key -> b heads query 1", "sum"))
        return mixed_values(weights, v, dropout), weights


def _rules_of(mask: Mask) -> tuple[bool, list[Padding]]:
    """Is the mask causal, and what does it pad?

    Raises:
        ValueError: If it is made of anything else.
    """
    causal, paddings = False, []
    for rule in mask.conjuncts():
        if type(rule) is Causal:
            causal = True
        elif type(rule) is Padding:
            paddings.append(rule)
        elif not rule.unrestricted:
            raise ValueError(
                "linear attention sums over keys, so it can honour causal masks, padding and both "
                f"together; got {mask!r}"
            )
    return causal, paddings


def _features(
    heads: Float[Tensor, "batch heads seq d_head"], keep: Real | None = None
) -> Float[Tensor, "batch heads seq d_head"]:
    """φ, which is positive, and 0 where there is no real token."""
    features = F.elu(heads.to(torch.promote_types(heads.dtype, torch.float32))) + 1
    if keep is None:
        return features
    return features.masked_fill(rearrange(keep.logical_not(), "batch seq -> batch 1 seq 1"), 0.0)


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """part / whole, and 0 where the whole is 0: a query that may attend to nothing."""
    return part / torch.where(whole > 0, whole, 1.0)


def _terms(q: Tensor, k: Tensor, causal: bool) -> Float[Tensor, "... query key"]:
    """φ(q)·φ(k), 0 for keys behind the query where that is asked for."""
    terms = einsum(q, k, "... query d_head, ... key d_head -> ... query key")
    return terms.tril() if causal else terms


def _whole(q: Tensor, k: Tensor, v: Tensor) -> Float[Tensor, "batch heads query channel"]:
    state = einsum(
        k, v, "batch heads key d_head, batch heads key channel -> batch heads d_head channel"
    )
    return einsum(
        q,
        state,
        "batch heads query d_head, batch heads d_head channel -> batch heads query channel",
    )


def _running(q: Tensor, k: Tensor, v: Tensor) -> Float[Tensor, "batch heads query channel"]:
    """For each query, the sum over the keys up to its own, in blocks: within one, and before it."""
    length = q.shape[2]
    fill = -length % BLOCK
    q, k, v = (
        rearrange(F.pad(one, (0, 0, 0, fill)), "... (block seq) c -> ... block seq c", seq=BLOCK)
        for one in (q, k, v)
    )
    own = einsum(k, v, "... seq d_head, ... seq channel -> ... d_head channel")
    # Shifted, not less their own: what is added and taken away again leaves a trace of the future.
    before = F.pad(own.cumsum(dim=2)[:, :, :-1], (0, 0, 0, 0, 1, 0))
    sums = _terms(q, k, causal=True) @ v + q @ before
    return rearrange(sums, "... block seq c -> ... (block seq) c")[:, :, :length]
