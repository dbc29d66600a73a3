from variants.dims import Dims
from variants.part import named
from variants.positions._wrapping import Randomizing
from variants.positions.position import Position


class RandomizedRoPE(Randomizing):
    """Rotary embedding at random positions: sorted distinct indices from a wider range.

    The ready name of `randomized` around `rope`, where all else is said.

    Source: Ruoss et al. 2023, section 3 (arXiv:2305.16843).
    """

    name = "randomized_rope"
    around = "rope"

    def __init__(self, dims: Dims, inner: Position = named("rope"), max_length: int = 2048) -> None:
        super().__init__(dims, inner, max_length)
