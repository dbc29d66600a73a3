"""Pre-LN."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from variants.dims import Dims
from variants.norm_placements.norm_placement import NormPlacement
from variants.norms import Norm


class Pre(NormPlacement):
    """x + f(norm(x)): what enters a sublayer is normalized; one final norm ends the stack.

    Source: Xiong et al. 2020 (arXiv:2002.04745).
    """

    name = "pre"
    final_norm = True

    def __init__(self, dims: Dims, make_norm: Callable[[], Norm]) -> None:
        super().__init__(dims, make_norm)
        self.before = make_norm()

    def forward(
        self, x: Float[Tensor, "batch seq d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch seq d_model"]:
        return x + sublayer(self.before(x))
