from einops import reduce

from variants.readouts.readout import Readout
from variants.shapes import Pooled, Real, Stream


class Mean(Readout):
    """The mean of the states of the real tokens."""

    name = "mean"

    def forward(self, hidden: Stream, keep: Real | None) -> Pooled:
        if keep is None:
            return reduce(hidden, "batch seq d_model -> batch d_model", "mean")
        real = reduce(keep.to(hidden.dtype), "batch seq -> batch 1", "sum")
        return reduce(hidden, "batch seq d_model -> batch d_model", "sum") / real.clamp(min=1)
