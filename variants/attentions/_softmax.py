"""The formula of softmax attention, for backends that hold scores themselves."""

import torch
import torch.nn.functional as F
from einops import einsum
from jaxtyping import Bool, Float
from torch import Tensor

from variants.shapes import Keys, Queries, Scores


def softmax_weights(
    q: Queries,
    k: Keys,
    allowed: Bool[Tensor, "#batch #heads #query #key"],
    *added: Float[Tensor, "#batch #heads query key"] | None,
) -> Scores:
    """The share of each key in each query's output: softmax(q·k/√d_head + what is added).

    Scores and weights are held in float32 or better. A query that may attend to nothing gets
    weights 0.
    """
    exact = torch.promote_types(q.dtype, torch.float32)
    scores = einsum(
        q.to(exact) * q.shape[-1] ** -0.5,
        k.to(exact),
        "batch heads query d_head, batch heads key d_head -> batch heads query key",
    )
    for term in added:
        scores = scores if term is None else scores + term
    some = allowed.any(dim=-1, keepdim=True)
    # A row of -inf alone would make softmax divide 0 by 0: such rows pass unmasked here, and are
    # set to 0 afterwards.
    scores = scores.masked_fill(~allowed & some, float("-inf"))
    return scores.softmax(dim=-1).masked_fill(~some, 0.0)


def mixed_values(weights: Scores, v: Keys, dropout: float) -> Queries:
    """The values of the keys, mixed by their weights, of which a share is dropped."""
    return einsum(
        F.dropout(weights, dropout).to(v.dtype),
        v,
        "batch heads query key, batch heads key d_head -> batch heads query d_head",
    )
