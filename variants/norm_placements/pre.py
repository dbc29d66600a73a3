from variants.dims import Dims
from variants.norm_placements.norm_placement import MakeNorm, NormPlacement, Sublayer
from variants.shapes import Stream


class Pre(NormPlacement):
    """x + f(norm(x)): what enters a sublayer is normalized; one final norm ends the stack.

    Source: Xiong et al. 2020 (arXiv:2002.04745).
    """

    name = "pre"
    final_norm = True

    def __init__(self, dims: Dims, make_norm: MakeNorm) -> None:
        super().__init__(dims, make_norm)
        self.before = make_norm()

    def forward(self, x: Stream, sublayer: Sublayer) -> Stream:
        return x + sublayer(self.before(x))
