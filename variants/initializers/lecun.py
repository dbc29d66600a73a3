import torch
from torch import Tensor, nn

from variants.dims import Dims
from variants.initializers.initializer import Initializer
from variants.part import positive


class LeCun(Initializer):
    """Matrices truncated normal with scale 1/√in, tables with scale table_std; biases 0.

    Nothing lies beyond two scales, which leaves a standard deviation of 0.88 scales. Haiku's
    `Linear` starts so by default, and its `Embed` with a scale of 1.

    Source: LeCun et al. 1998, "Efficient BackProp", section 4.6; the cut is that of Haiku.

    Raises:
        ValueError: If table_std is not positive.
    """

    name = "lecun"

    def __init__(self, dims: Dims, table_std: float = 0.02) -> None:
        super().__init__(dims)
        self.table_std = positive("table_std", table_std)

    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        _truncated(weight, weight.shape[1] ** -0.5, generator)

    def table(self, weight: Tensor, generator: torch.Generator) -> None:
        _truncated(weight, self.table_std, generator)


def _truncated(weight: Tensor, scale: float, generator: torch.Generator) -> None:
    nn.init.trunc_normal_(weight, std=scale, a=-2 * scale, b=2 * scale, generator=generator)
