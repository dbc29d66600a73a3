from variants.dims import Dims
from variants.norm_placements.norm_placement import MakeNorm, NormPlacement, Sublayer
from variants.shapes import Stream


class Parallel(NormPlacement):
    """x + f(y) + g(y) with y = norm(x): both sublayers of a block read the same normed input.

    One norm a block instead of two; one final norm ends the stack.

    Source: Wang and Komatsuzaki 2021 (GPT-J); Chowdhery et al. 2022, section 2 (arXiv:2204.02311).
    """

    name = "parallel"
    final_norm = True
    sublayers = 2

    def __init__(self, dims: Dims, make_norm: MakeNorm) -> None:
        super().__init__(dims, make_norm)
        self.before = make_norm()

    def forward(self, x: Stream, *sublayers: Sublayer) -> Stream:
        y = self.before(x)
        for sublayer in sublayers:
            x = x + sublayer(y)
        return x
