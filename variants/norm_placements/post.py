"""Post-LN."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from variants.dims import Dims
from variants.norm_placements.norm_placement import NormPlacement
from variants.norms import Norm


class Post(NormPlacement):
    """norm(x + f(x)): the stream itself is normalized after each sublayer; no final norm.

    Source: Vaswani et al. 2017, section 3.1 (arXiv:1706.03762).
    """

    name = "post"

    def __init__(self, dims: Dims, make_norm: Callable[[], Norm]) -> None:
        super().__init__(dims, make_norm)
        self.after = make_norm()

    def forward(
        self, x: Float[Tensor, "batch seq d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch seq d_model"]:
        return self.after(x + sublayer(x))
