from variants.positions._wrapping import Randomizing


class Randomized(Randomizing):
    """Any encoding at random positions: sorted distinct indices from a wider range.

    Training then shows all positions that longer sequences will stand at. Each forward, also in
    evaluation, draws once: sequences of one length share their positions, and n tokens stand at a
    uniformly random set of n indices below max_length. `evaluation.position_draws` averages
    predictions over draws.

    Relative encodings see the differences of the drawn positions. (The authors' code draws
    distances for those instead, the same for every query.)

    Source: Ruoss et al. 2023, section 3 (arXiv:2305.16843).

    Args:
        inner: The encoding that is used at these positions.
        max_length: Positions are drawn below this index: at least the longest sequence of all.

    Raises:
        ValueError: If max_length is not positive or more than the inner encoding was built for.
        BeyondTableError: In a forward, if a sequence is longer than max_length.
    """

    name = "randomized"
