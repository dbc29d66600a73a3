import torch
from einops import einsum, rearrange
from jaxtyping import Float, Int
from torch import Tensor

from variants.dims import Dims
from variants.positions.position import Position
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex


class XPos(Position):
    r"""Rotary position embedding whose scores also fade with the distance, fast pairs sooner.

    Channel pair p at index t turns by $t\,\theta^{-2p/d}$ with d = d_head, as in RoPE; queries are
    multiplied by $\zeta_p^{t / scale\_base}$ and keys by its inverse, with
    $\zeta_p = (2p + 0.4 d) / (1.4 d) < 1$. So a pair counts $\zeta_p^{(i - j) / scale\_base}$: less
    with each step back, but *more* for keys after the query. It is meant for causal masks alone.

    Powers are taken from the middle of each sequence, which cancels in every score; in float32
    sequences may span about 35,000 indices.

    Source: Sun et al. 2022, section 3 (arXiv:2212.10554), and the authors' code.

    Args:
        theta: Base of the wavelengths.
        scale_base: Steps over which a pair fades by its factor.

    Raises:
        ValueError: If d_head is odd, or a base is not positive.
    """

    name = "xpos"
    distance_only = True
    causal_only = True

    def __init__(self, dims: Dims, theta: float = 10_000.0, scale_base: float = 512.0) -> None:
        super().__init__(dims)
        if dims.d_head % 2:
            raise ValueError(
                "xpos turns channels in pairs, so d_head must be even; "
                f"got d_head={dims.d_head} (d_model={dims.d_model}, n_heads={dims.n_heads})"
            )
        if theta <= 0 or scale_base <= 0:
            raise ValueError(
                f"theta and scale_base are positive; got theta={theta}, scale_base={scale_base}"
            )
        self.theta, self.scale_base = theta, scale_base

    def rotate(
        self, q: Queries, k: Keys, q_index: QueryIndex, k_index: KeyIndex
    ) -> tuple[Queries, Keys]:
        low, high = k_index.amin(dim=-1, keepdim=True), k_index.amax(dim=-1, keepdim=True)
        middle = (low + high) // 2
        return self._turned(q, q_index, middle, 1), self._turned(k, k_index, middle, -1)

    def _turned(
        self,
        heads: Float[Tensor, "batch heads seq d_head"],
        index: Int[Tensor, "#batch seq"],
        middle: Int[Tensor, "#batch 1"],
        sign: int,
    ) -> Float[Tensor, "batch heads seq d_head"]:
        width = self.dims.d_head
        pair = torch.arange(width // 2, device=index.device, dtype=torch.float64)
        steps = "batch seq, pair -> batch seq pair"
        angle = einsum(index.double(), self.theta ** (-2 * pair / width), steps)
        fading = ((2 * pair + 0.4 * width) / (1.4 * width)).log() * sign / self.scale_base
        size = einsum((index - middle).double(), fading, steps).exp()
        waves = torch.stack([size * angle.cos(), size * angle.sin()]).to(heads.dtype)
        cos, sin = rearrange(waves, "two batch seq pair -> two batch 1 seq pair")
        first, second = rearrange(heads, "... (pair two) -> two ... pair", two=2)
        turned = [first * cos - second * sin, first * sin + second * cos]
        return rearrange(turned, "two ... pair -> ... (pair two)")
