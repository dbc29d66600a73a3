from variants.dims import Dims
from variants.norm_placements.norm_placement import MakeNorm, NormPlacement, Sublayer
from variants.shapes import Stream


class Sandwich(NormPlacement):
    """x + norm(f(norm(x))): what enters a sublayer is normalized, and so is what leaves it.

    Each sublayer adds a vector of bounded size; one final norm ends the stack.

    Source: Ding et al. 2021, section 2.4 (arXiv:2105.13290); Gemma 2 (arXiv:2408.00118) does the
    same with RMSNorm, and Kim et al. 2025 (arXiv:2502.02732) call it peri-LN.
    """

    name = "sandwich"
    final_norm = True

    def __init__(self, dims: Dims, make_norm: MakeNorm) -> None:
        super().__init__(dims, make_norm)
        self.before, self.after = make_norm(), make_norm()

    def forward(self, x: Stream, sublayer: Sublayer) -> Stream:
        return x + self.after(sublayer(self.before(x)))
