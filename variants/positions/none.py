from variants.positions.position import Position


class NoPosition(Position):
    """No position information at all: the encoder sees a bag of tokens unless its mask orders them.

    Source: Haviv et al. 2022 (arXiv:2203.16634) and Kazemnejad et al. 2023 (arXiv:2305.19466),
    who study it under a causal mask, which does tell positions apart.
    """

    name = "none"
    sees_order = False
    sees_direction = False
    distance_only = True
