"""Rotary position embedding."""

import torch
from einops import einsum, rearrange
from jaxtyping import Float, Int
from torch import Tensor

from variants.dims import Dims
from variants.positions.position import Position


class RoPE(Position):
    r"""Rotary position embedding: turn queries and keys by an angle that grows with the index.

    Channel pair p of a head at index t turns by $t \theta^{-2p/d}$ with d = d_head, so a score
    depends on the distance between its query and its key alone. A pair is two neighbouring
    channels, as in the paper; the Llama code pairs channel p with channel p + d/2, which gives
    other numbers with the same properties.

    Source: Su et al. 2021, section 3.2.2 (arXiv:2104.09864).

    Args:
        theta: Base of the wavelengths.

    Raises:
        ValueError: If d_head is odd, or theta is not positive.
    """

    name = "rope"
    distance_only = True

    def __init__(self, dims: Dims, theta: float = 10_000.0) -> None:
        super().__init__(dims)
        if dims.d_head % 2:
            raise ValueError(
                "rope turns channels in pairs, so d_head must be even; "
                f"got d_head={dims.d_head} (d_model={dims.d_model}, n_heads={dims.n_heads})"
            )
        if theta <= 0:
            raise ValueError(f"theta must be positive; got theta={theta}")
        self.theta = theta

    def rotate(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
        q_index: Int[Tensor, "#batch query"],
        k_index: Int[Tensor, "#batch key"],
    ) -> tuple[Float[Tensor, "batch heads query d_head"], Float[Tensor, "batch heads key d_head"]]:
        turn_q = self._waves(q_index, q)
        turn_k = turn_q if k_index is q_index else self._waves(k_index, k)
        return _turn(q, *turn_q), _turn(k, *turn_k)

    def _waves(
        self, index: Int[Tensor, "batch seq"], like: Tensor
    ) -> tuple[Float[Tensor, "batch 1 seq pair"], Float[Tensor, "batch 1 seq pair"]]:
        channel = torch.arange(0, self.dims.d_head, 2, device=index.device, dtype=torch.float64)
        frequency = self.theta ** (-channel / self.dims.d_head)
        angle = einsum(index.to(frequency), frequency, "batch seq, pair -> batch seq pair")
        angle = rearrange(angle, "batch seq pair -> batch 1 seq pair")
        return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def _turn(
    heads: Float[Tensor, "batch heads seq d_head"],
    cos: Float[Tensor, "#batch 1 seq pair"],
    sin: Float[Tensor, "#batch 1 seq pair"],
) -> Float[Tensor, "batch heads seq d_head"]:
    first, second = rearrange(heads, "... (pair two) -> two ... pair", two=2)
    turned = [first * cos - second * sin, first * sin + second * cos]
    return rearrange(turned, "two ... pair -> ... (pair two)")
