"""Run an encoder with links cut: queries that may not use some of their keys."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from einops import einsum
from jaxtyping import Bool, Float
from torch import Tensor

from registry import attentions
from variants.attentions.attention import Attention
from variants.attentions.explicit import Explicit, Prepared
from variants.encoder import Encoder, EncoderOutput

Links = Bool[Tensor, "#batch #heads query key"]
"""True where a link is cut: all heads of a layer with a single head, or each its own."""
Weights = Float[Tensor, "batch heads query key"]
Place = Literal["before", "after", "after_renormalized"]


def run_cut(
    encoder: Encoder, tokens: Tensor, cuts: Sequence[Links | None], place: Place = "before"
) -> EncoderOutput:
    r"""The output of an encoder, whose attention weights are at hand, with links cut.

    A cut takes key k from query q in one layer, in one of three places:

    - before the softmax: the score becomes $-\infty$, so the weights of the other keys rise,
      $a'_j = a_j / (1 - a_k)$;
    - after it: the weight becomes 0 and the others stay as they are, so a row sums to $1 - a_k$;
    - after it, renormalized: the row is divided by its sum, which is the same as before.

    A query that loses every key gets output 0, as everywhere. The encoder is left as it was, and
    an encoder that is not cut runs none of this. `weights` of the output are those after the cut.

    Source: Serrano and Smith 2019 (arXiv:1906.03731), who renormalize; without it, Michel et al.
    2019 (arXiv:1905.10650), whose masked heads keep their share.

    `cuts` holds an entry for each layer; None leaves a layer whole.

    Raises:
        ValueError: If `cuts` has another length, or the attention is no softmax over keys.
    """
    check_cuttable(encoder)
    if len(cuts) != encoder.dims.n_layers:
        raise ValueError(
            f"cuts are one for each of the {encoder.dims.n_layers} layers, None to leave it whole; "
            f"got {len(cuts)}"
        )
    whole = encoder.reference
    encoder.reference = CutAttention(whole, cuts, place)
    try:
        return encoder(tokens, need_weights=True)
    finally:
        encoder.reference = whole


def check_cuttable(encoder: object) -> None:
    """Refuse with a ValueError what is no encoder of ours, or has no softmax over keys."""
    if not isinstance(encoder, Encoder):
        raise ValueError(
            f"links are cut in the attention of an encoder; got {type(encoder).__name__}"
        )
    softmax: Any = encoder.attention.softmax
    if not softmax or not isinstance(encoder.reference, Explicit):
        softmaxes = [name for name, kind in attentions.items() if kind.softmax]
        raise ValueError(
            f"links are cut in a softmax over keys, that of {', '.join(softmaxes)}; got "
            f"{encoder.attention.name}"
        )


class CutAttention(Attention):
    """Stands in for the reference attention `whole` during one forward, and counts the layers."""

    name = "cut"

    def __init__(self, whole: Attention, cuts: Sequence[Links | None], place: Place) -> None:
        super().__init__(whole.dims)
        self.whole: Any = whole
        self.place: Place = place
        self.cuts, self.layer = cuts, 0

    def prepare(self, *inputs: Any) -> Prepared:
        """What the layers of one forward share."""
        return self.whole.prepare(*inputs)

    def with_weights(
        self, q: Tensor, k: Tensor, v: Tensor, prepared: Prepared, dropout: float = 0.0
    ) -> tuple[Tensor, Weights]:
        """The mixed values of the next layer, and its weights after the cut."""
        cut, self.layer = self.cuts[self.layer], self.layer + 1
        if cut is None:
            return self.whole.with_weights(q, k, v, prepared, dropout)
        if self.place == "before":
            left = replace(prepared, allowed=prepared.allowed & cut.logical_not())
            return self.whole.with_weights(q, k, v, left, dropout)
        weights = self.whole.weights(q, k, prepared).masked_fill(cut, 0.0)
        if self.place == "after_renormalized":
            kept = weights.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
            weights = weights / kept
        mixed = einsum(
            F.dropout(weights, dropout).to(v.dtype),
            v,
            "batch heads query key, batch heads key d_head -> batch heads query d_head",
        )
        return mixed, weights

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, prepared: Prepared, dropout: float = 0.0
    ) -> Tensor:
        """The mixed values of the next layer."""
        return self.with_weights(q, k, v, prepared, dropout)[0]
