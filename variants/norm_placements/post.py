from variants.dims import Dims
from variants.norm_placements.norm_placement import MakeNorm, NormPlacement, Sublayer
from variants.shapes import Stream


class Post(NormPlacement):
    """norm(x + f(x)): the stream itself is normalized after each sublayer; no final norm.

    Source: Vaswani et al. 2017, section 3.1 (arXiv:1706.03762).
    """

    name = "post"

    def __init__(self, dims: Dims, make_norm: MakeNorm) -> None:
        super().__init__(dims, make_norm)
        self.after = make_norm()

    def forward(self, x: Stream, sublayer: Sublayer) -> Stream:
        return self.after(x + sublayer(x))
