"""The largest value of each channel."""

from einops import rearrange, reduce
from jaxtyping import Bool, Float
from torch import Tensor

from variants.readouts.readout import Readout


class Max(Readout):
    """Channel by channel, the largest value among the real tokens."""

    name = "max"

    def forward(
        self,
        hidden: Float[Tensor, "batch seq d_model"],
        keep: Bool[Tensor, "batch seq"] | None,
    ) -> Float[Tensor, "batch d_model"]:
        if keep is None:
            return reduce(hidden, "batch seq d_model -> batch d_model", "max")
        real = rearrange(keep, "batch seq -> batch seq 1")
        some = reduce(keep.to(hidden.dtype), "batch seq -> batch 1", "max").bool()
        # A sequence without real tokens has zero states, whose maximum is the 0 that it must read.
        hidden = hidden.masked_fill(~real & rearrange(some, "batch 1 -> batch 1 1"), float("-inf"))
        return reduce(hidden, "batch seq d_model -> batch d_model", "max")
