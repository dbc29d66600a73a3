from variants.dims import Dims
from variants.part import named
from variants.positions._wrapping import Randomizing
from variants.positions.position import Position


class RandomizedALiBi(Randomizing):
    """ALiBi at random positions: sorted distinct indices from a wider range.

    The ready name of `randomized` around `alibi`, where all else is said. Its
    sides are those of the authors' code, half an index apart, which tell left from right.

    Source: Ruoss et al. 2023, section 3 (arXiv:2305.16843).
    """

    name = "randomized_alibi"
    around = "alibi"
    waives = {
        "it_learns_what_it_can_express": "distances below 2,048 leave little but the token itself"
    }

    def __init__(
        self,
        dims: Dims,
        inner: Position = named("alibi", sides="half_offset"),
        max_length: int = 2048,
    ) -> None:
        super().__init__(dims, inner, max_length)
