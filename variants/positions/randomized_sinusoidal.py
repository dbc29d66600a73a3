from variants.dims import Dims
from variants.part import named
from variants.positions._randomizing import Randomizing
from variants.positions.position import Position


class RandomizedSinusoidal(Randomizing):
    """Sinusoidal encoding at random positions: sorted distinct indices from a wider range.

    The ready name of `randomized` around `sinusoidal`; how positions are drawn, and what is
    refused, is said there.

    Source: Ruoss et al. 2023, section 3 (arXiv:2305.16843).

    Args:
        inner: Sinusoidal encoding, with its own options.
        max_length: Positions are drawn below this index: at least the longest sequence of all.
    """

    name = "randomized_sinusoidal"
    around = "sinusoidal"

    def __init__(
        self, dims: Dims, inner: Position = named("sinusoidal"), max_length: int = 2048
    ) -> None:
        super().__init__(dims, inner, max_length)
