from variants.dims import Dims
from variants.part import named
from variants.positions._randomizing import Randomizing
from variants.positions.position import Position


class RandomizedTransformerXL(Randomizing):
    """Transformer-XL's encoding at random positions: sorted distinct indices from a wider range.

    The ready name of `randomized` around `transformer_xl`; how positions are drawn, and what is
    refused, is said there.

    Source: Ruoss et al. 2023, section 3 (arXiv:2305.16843).

    Args:
        inner: Transformer-XL's relative encoding, with its own options.
        max_length: Positions are drawn below this index: at least the longest sequence of all.
    """

    name = "randomized_transformer_xl"
    around = "transformer_xl"

    def __init__(
        self, dims: Dims, inner: Position = named("transformer_xl"), max_length: int = 2048
    ) -> None:
        super().__init__(dims, inner, max_length)
