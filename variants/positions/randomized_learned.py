from variants.dims import Dims
from variants.part import named
from variants.positions._wrapping import Randomizing
from variants.positions.position import Position


class RandomizedLearned(Randomizing):
    """A learned table at random positions: sorted distinct indices from a wider range.

    The ready name of `randomized` around `learned`, where all else is said. Every
    row of the table is trained, however short the sequences.

    Source: Ruoss et al. 2023, section 3 (arXiv:2305.16843).
    """

    name = "randomized_learned"
    around = "learned"
    waives = {"it_learns_what_it_can_express": "a hundred sequences meet each of 2,048 rows seldom"}

    def __init__(
        self,
        dims: Dims,
        inner: Position = named("learned", max_length=2048),
        max_length: int = 2048,
    ) -> None:
        super().__init__(dims, inner, max_length)
