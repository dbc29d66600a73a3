"""The contract of attention backends."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from variants.dims import Dims
from variants.masks.mask import Mask, Sizes
from variants.norms.norm import over_root_mean_square
from variants.part import Part
from variants.positions.position import Position
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex, Scores

ROWS = 256
"""How many queries are looked at together when keys are counted."""

Scale = Literal["1/sqrt(d_head)", "1/d_head", "none", "learned"]


class HeadNorm(nn.Module):
    """The norm of queries or keys: their root mean square over d_head, then gains.

    States whose squares overflow come out as NaN, as from any norm. Under autocast the gains are
    taken to the precision of the states.

    Args:
        d_head: Width of a head.
        eps: What is added to the mean square.
    """

    def __init__(self, d_head: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_head))

    def forward(self, x: Float[Tensor, "*any d_head"]) -> Float[Tensor, "*any d_head"]:
        return over_root_mean_square(x, self.eps) * self.weight.to(x.dtype)


@dataclass(frozen=True)
class Heads:
    """How each layer makes its queries, keys and values, whatever the backend.

    Args:
        n_kv_heads: Heads of keys and values.
        scale: What scores are multiplied by.
        qk_norm: Whether queries and keys are normalized.
    """

    n_kv_heads: int
    scale: Scale = "1/sqrt(d_head)"
    qk_norm: bool = False

    @property
    def learned_scale(self) -> bool:
        """Does each head of a layer learn its scale?"""
        return self.scale == "learned"

    def factor(self, d_head: int) -> float:
        """What a scale is as a multiple of 1/√d_head; a learned one starts there."""
        return {"1/d_head": d_head**-0.5, "none": d_head**0.5}.get(self.scale, 1.0)

    def norm(self, d_head: int) -> nn.Module:
        """The norm of a layer's queries, or keys."""
        return HeadNorm(d_head, eps=1e-6) if self.qk_norm else nn.Identity()


class Attention(Part):
    """How queries mix the values of the keys: softmax(q·k/√d_head + bias + scores) v.

    A query attends to the keys that the mask allows; one that may attend to nothing gets output
    0, weights 0 and gradient 0. `prepare` runs once a forward and works out what all layers share;
    the value that it returns lives no longer than that forward.

    Each layer makes queries, keys and values the same way for every backend, as the options say:

    Args:
        scale: What scores are multiplied by: 1/√d_head; 1/d_head, which keeps their size as heads
            grow wider (Yang et al. 2022, arXiv:2203.03466); none, that is 1, as in T5 (Raffel et
            al. 2020, arXiv:1910.10683); learned: 1/√d_head times a factor for each head of each
            layer, which starts at 1 (Lee et al. 2021, arXiv:2112.13492).
        n_kv_heads: Heads of keys and values; None: n_heads. With 1 all heads of queries share one
            (multi-query attention, Shazeer 2019, arXiv:1911.02150), in between groups of
            neighbours do (grouped-query attention, Ainslie et al. 2023, arXiv:2305.13245).
        qk_norm: Whether queries and keys are divided by their root mean square over d_head (eps
            1e-6) and multiplied by gains that each layer learns, before positions turn them
            (Henry et al. 2020, arXiv:2010.04245; Dehghani et al. 2023, arXiv:2302.05442).
        length_base: Base b of a logarithm: scores are multiplied by log_b n as well, n the number
            of keys that the query may attend to, so that weights stay sharp over longer sequences.
            e gives ln n (Chiang and Cholak 2022, arXiv:2202.12172); the trained length leaves
            scores there as they are (Su 2021, kexue.fm/archives/8823). None: not at all.

    Raises:
        ValueError: If n_kv_heads does not divide n_heads, or length_base is not above 1.
    """

    softmax: ClassVar[bool] = True
    """True: the formula above, so that all such backends agree; False: another attention."""

    def __init__(
        self,
        dims: Dims,
        scale: Scale = "1/sqrt(d_head)",
        n_kv_heads: int | None = None,
        qk_norm: bool = False,
        length_base: float | None = None,
    ) -> None:
        super().__init__()
        self.dims, self.length_base = dims, length_base
        if length_base is not None and length_base <= 1:
            raise ValueError(f"length_base is the base of a logarithm, above 1; got {length_base}")
        n_kv_heads = dims.n_heads if n_kv_heads is None else n_kv_heads
        if n_kv_heads < 1 or dims.n_heads % n_kv_heads:
            raise ValueError(
                "heads of queries share heads of keys and values in groups of one size, so "
                f"n_kv_heads must divide n_heads; got n_heads={dims.n_heads}, "
                f"n_kv_heads={n_kv_heads}"
            )
        self.heads = Heads(n_kv_heads, scale, qk_norm)

    def length_factor(
        self, mask: Mask, sizes: Sizes, device: torch.device
    ) -> Float[Tensor, "#batch #heads query 1"] | None:
        """What queries are multiplied by for the number of keys that each may attend to.

        The keys are counted in slices of the queries, so the mask is never whole in memory.
        """
        if self.length_base is None:
            return None
        shape = sizes.shape
        counts: list[Tensor] = []
        for start in range(0, sizes.queries, ROWS):
            rows = slice(start, min(start + ROWS, sizes.queries))
            allowed = mask.chunk(rows, *shape, device=device).expand(-1, -1, -1, sizes.keys)
            count = allowed.sum(dim=-1, keepdim=True)
            counts.append(count.expand(-1, -1, rows.stop - start, -1))
        visible = torch.cat(counts, dim=2).clamp(min=1)
        return visible.log() / math.log(self.length_base)

    def check(self, mask: Mask, position: Position) -> None:
        """Refuse what this attention cannot honour; one that honours all has nothing to say.

        Raises:
            ValueError: If it cannot honour the mask, or what the position adds or turns.
        """

    def takes(self, mask: Mask, position: Position) -> bool:
        """Does it honour this mask and this position? Promises ask before they try them."""
        try:
            self.check(mask, position)
        except ValueError:
            return False
        return True

    @abstractmethod
    def prepare(
        self, mask: Mask, position: Position, q_index: QueryIndex, k_index: KeyIndex, sizes: Sizes
    ) -> Any:
        """What the layers of one forward share, such as the lowered mask and the bias."""

    @abstractmethod
    def forward(self, q: Queries, k: Keys, v: Keys, prepared: Any, dropout: float = 0.0) -> Queries:
        """The mixed values; `dropout` is the share of weights to drop, 0 in evaluation."""

    def with_weights(
        self, q: Queries, k: Keys, v: Keys, prepared: Any, dropout: float = 0.0
    ) -> tuple[Queries, Scores]:
        """The mixed values, and the weights before dropout.

        Raises:
            NotImplementedError: If the backend never holds its weights; `explicit` does.
        """
        raise NotImplementedError(f"{self.name} never holds its weights; explicit does")
