from variants.positions._wrapping import Randomizing


class RandomizedSinusoidal(Randomizing):
    """Sinusoidal encoding at random positions: sorted distinct indices from a wider range.

    The ready name of `randomized` around `sinusoidal`, where all else is said.

    Source: Ruoss et al. 2023, section 3 (arXiv:2305.16843).
    """

    name = "randomized_sinusoidal"
    around = "sinusoidal"
