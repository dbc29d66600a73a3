from variants.dims import Dims
from variants.norm_placements.norm_placement import MakeNorm, NormPlacement, Sublayer
from variants.shapes import Stream


class NoResidual(NormPlacement):
    """f(norm(x)): a sublayer replaces what enters it. An ablation of the residual stream.

    Token states lose rank doubly exponentially with depth; one final norm ends the stack.

    Source: Dong et al. 2021 (arXiv:2103.03404).
    """

    name = "no_residual"
    waives = {
        "the_stream_is_normalized_once": "it leaves out the stream",
        "each_sublayer_is_called_once_and_joins_the_stream": "it leaves out the stream",
    }
    final_norm = True

    def __init__(self, dims: Dims, make_norm: MakeNorm) -> None:
        super().__init__(dims, make_norm)
        self.before = make_norm()

    def forward(self, x: Stream, sublayer: Sublayer) -> Stream:
        return sublayer(self.before(x))
