from typing import Literal

import torch
from einops import einsum, rearrange

from variants.dims import Dims
from variants.part import positive
from variants.positions.position import Position
from variants.shapes import Stream, TokenIndex


class Sinusoidal(Position):
    r"""Sines and cosines of geometric wavelengths, added to the token vectors.

    $PE(t, 2p) = \sin(t \cdot base^{-2p/d})$ and $PE(t, 2p+1) = \cos(t \cdot base^{-2p/d})$ with
    d = d_model: neighbouring channels form a pair. A row has squared norm d/2, and the product of
    two rows depends on their distance alone.

    >>> row = Sinusoidal(Dims(6, 1, 6, 1)).embed(torch.tensor([[1]]))
    >>> [round(channel, 6) for channel in row.flatten().tolist()]
    [0.841471, 0.540302, 0.046399, 0.998923, 0.002154, 0.999998]

    Source: Vaswani et al. 2017, section 3.5 (arXiv:1706.03762).

    Args:
        base: Base of the wavelengths.
        layout: "interleaved": sine and cosine of a pair are neighbours, as in the paper.
            "concatenated": all sines, then all cosines, as in the authors' code. The two are one
            permutation of channels apart.

    Raises:
        ValueError: If d_model is odd, or base is not positive.
    """

    name = "sinusoidal"

    def __init__(
        self,
        dims: Dims,
        base: float = 10_000.0,
        layout: Literal["interleaved", "concatenated"] = "interleaved",
    ) -> None:
        super().__init__(dims)
        if dims.d_model % 2:
            raise ValueError(
                "sinusoidal pairs a sine with a cosine channel, so d_model must be even; "
                f"got d_model={dims.d_model}"
            )
        self.base = positive("base", base)
        self.pairs = {"interleaved": "(pair two)", "concatenated": "(two pair)"}[layout]

    def embed(self, index: TokenIndex) -> Stream:
        width = self.dims.d_model
        channel = torch.arange(0, width, 2, device=index.device, dtype=torch.float64)
        frequency = self.base ** (-channel / width)
        angle = einsum(index.to(frequency), frequency, "batch seq, pair -> batch seq pair")
        waves = [angle.sin(), angle.cos()]
        return rearrange(waves, f"two batch seq pair -> batch seq {self.pairs}")
