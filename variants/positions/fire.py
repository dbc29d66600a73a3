from typing import Literal

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from variants.dims import Dims
from variants.positions.position import Position, relative
from variants.shapes import KeyIndex, QueryIndex, Scores


class FIRE(Position):
    r"""A learned function of the distance as a share of the longest distance so far.

    $bias(i, j) = f\big(\psi(|i - j|) / \psi(\max(i, j, L))\big)$ with $\psi(x) = \log(|c x| + 1)$
    and f a perceptron 1 → width → n_heads with ReLU; c starts at 0.1 and L is `threshold` times a
    learned factor that starts at 1. Shares never exceed 1, however long the sequence, so f never
    leaves the range that it was trained on.

    Under a causal mask max(i, j) = i and the formula is the paper's. For keys after the query f has
    outputs of its own with sides = "separate"; with "symmetric" they are treated like keys before.
    Indices beyond L tell their place: the bias is then no function of the distance alone.

    Source: Li et al. 2023, section 3 (arXiv:2310.04418).

    Args:
        width: Hidden units of f.
        threshold: L at first: below it, distances are shares of a constant.
        sides: How keys after the query are treated.

    Raises:
        ValueError: If width or threshold is not positive.
    """

    name = "fire"
    initializes_itself = True
    waives = {"without_biases_there_are_none": "the biases of f make the function that it learns"}

    def __init__(
        self,
        dims: Dims,
        width: int = 32,
        threshold: float = 512.0,
        sides: Literal["separate", "symmetric"] = "separate",
    ) -> None:
        super().__init__(dims)
        if width < 1 or threshold <= 0:
            raise ValueError(
                f"width and threshold are positive; got width={width}, threshold={threshold}"
            )
        self.threshold, self.two_sided = threshold, sides == "separate"
        self.hidden = nn.Linear(1, width)
        self.to_heads = nn.Linear(width, dims.n_heads * (2 if self.two_sided else 1))
        self.c = nn.Parameter(torch.tensor(0.1))
        self.stretch = nn.Parameter(torch.tensor(1.0))

    def bias(self, q_index: QueryIndex, k_index: KeyIndex) -> Scores:
        share = rearrange(self._share(q_index, k_index), "batch query key -> batch query key 1")
        # A product, not a matrix product: autocast would round the shares of near distances alike.
        weight = rearrange(self.hidden.weight, "width 1 -> width").to(share)
        hidden = F.relu(share * weight + self.hidden.bias.to(share))
        out = F.linear(hidden, self.to_heads.weight.to(share), self.to_heads.bias.to(share))
        if not self.two_sided:
            return rearrange(out, "batch query key heads -> batch heads query key")
        sides = "batch query key (two heads) -> two batch heads query key"
        before, after = rearrange(out, sides, two=2)
        ahead = rearrange(relative(q_index, k_index) > 0, "batch query key -> batch 1 query key")
        return torch.where(ahead, after, before)

    def _share(self, q_index: QueryIndex, k_index: KeyIndex) -> Float[Tensor, "batch query key"]:
        exact = torch.promote_types(self.c.dtype, torch.float32)
        away = relative(q_index, k_index)
        furthest = rearrange(q_index, "batch query -> batch query 1") + away.clamp(min=0)
        limit = (self.threshold * self.stretch.to(exact)).abs()
        longest = self._psi(torch.maximum(furthest.to(exact), limit))
        # A c that training takes to 0 must not make shares 0 / 0.
        return self._psi(away.abs().to(exact)) / (longest + 1e-6)

    def _psi(self, x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        return (self.c.to(x) * x).abs().log1p()
