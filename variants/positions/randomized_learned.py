from variants.dims import Dims
from variants.part import named
from variants.positions._randomizing import Randomizing
from variants.positions.position import Position


class RandomizedLearned(Randomizing):
    """A learned table at random positions: sorted distinct indices from a wider range.

    The ready name of `randomized` around `learned`; how positions are drawn, and what is refused,
    is said there. Every row of the table is trained, however short the sequences.

    Source: Ruoss et al. 2023, section 3 (arXiv:2305.16843).

    Args:
        inner: Learned positions, with its own options.
        max_length: Positions are drawn below this index: at least the longest sequence of all.
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
