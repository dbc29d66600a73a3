import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from variants.dims import Dims
from variants.part import named
from variants.positions.position import Position, built
from variants.shapes import Stream, TokenIndex


class Concatenated(Position):
    """An encoding in channels of its own, beside the token vectors instead of added to them.

    The first `width` channels of the inner encoding take the place of the last `width` channels of
    the token vectors: the same as token vectors of d_model - width channels with the encoding
    behind them. Added, the two share all channels, and the first layer has to tell them apart.

    Source: Gehring et al. 2017, section 3.1 (arXiv:1705.03122), who add; Ke et al. 2020, section
    3.1 (arXiv:2006.15595), on what adding mixes up.

    Args:
        inner: The encoding, which adds vectors to tokens and does nothing else.
        width: How many channels it gets; None: half of d_model.

    Raises:
        ValueError: If width is not between 1 and d_model - 1, or the inner encoding does not add
            vectors to tokens, or does more than that.
        TypeError: If inner is not a built position.
    """

    name = "concatenated"

    def __init__(
        self, dims: Dims, inner: Position = named("sinusoidal"), width: int | None = None
    ) -> None:
        super().__init__(dims)
        others = ("place", "join", "rotate", "bias", "scores")
        more = [seam for seam in others if _overrides(built(inner), seam)]
        if more or not _overrides(inner, "embed"):
            does = " and ".join(more) or "nothing of that kind"
            raise ValueError(
                f"concatenated takes an encoding that adds vectors to tokens and does no more; "
                f"{inner.name} does {does}; take sinusoidal or learned"
            )
        width = dims.d_model // 2 if width is None else width
        if not 1 <= width < dims.d_model:
            raise ValueError(
                f"width leaves channels for tokens, so it lies between 1 and {dims.d_model - 1}; "
                f"got width={width}"
            )
        self.inner, self.width = inner, width
        self.beyond, self.longest = inner.beyond, inner.longest

    def embed(self, index: TokenIndex) -> Stream:
        """The encoding in the last channels, 0 in the others."""
        rows = self.inner.embed(index)
        assert rows is not None
        return F.pad(rows[..., : self.width], (self.dims.d_model - self.width, 0))

    def join(self, x: Stream, index: Int[Tensor, "#batch seq"]) -> Stream:
        own = torch.arange(self.dims.d_model, device=x.device) >= self.dims.d_model - self.width
        return torch.where(own, self.embed(index).to(x.dtype), x)


def _overrides(position: Position, seam: str) -> bool:
    return getattr(type(position), seam) is not getattr(Position, seam)
