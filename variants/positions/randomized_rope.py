from variants.dims import Dims
from variants.part import named
from variants.positions._randomizing import Randomizing
from variants.positions.position import Position


class RandomizedRoPE(Randomizing):
    """Rotary embedding at random positions: sorted distinct indices from a wider range.

    The ready name of `randomized` around `rope`; how positions are drawn, and what is
    refused, is said there.

    Source: Ruoss et al. 2023, section 3 (arXiv:2305.16843).

    Args:
        inner: Rotary embedding, with its own options.
        max_length: Positions are drawn below this index: at least the longest sequence of all.
    """

    name = "randomized_rope"
    around = "rope"

    def __init__(self, dims: Dims, inner: Position = named("rope"), max_length: int = 2048) -> None:
        super().__init__(dims, inner, max_length)
