"""Average over the tokens."""

from einops import reduce
from jaxtyping import Bool, Float
from torch import Tensor

from variants.readouts.readout import Readout


class Mean(Readout):
    """The mean of the states of the real tokens."""

    name = "mean"

    def forward(
        self,
        hidden: Float[Tensor, "batch seq d_model"],
        keep: Bool[Tensor, "batch seq"] | None,
    ) -> Float[Tensor, "batch d_model"]:
        if keep is None:
            return reduce(hidden, "batch seq d_model -> batch d_model", "mean")
        real = reduce(keep.to(hidden.dtype), "batch seq -> batch 1", "sum")
        return reduce(hidden, "batch seq d_model -> batch d_model", "sum") / real.clamp(min=1)
