from einops import rearrange, reduce

from variants.readouts.readout import Readout
from variants.shapes import Pooled, Real, Stream


class Max(Readout):
    """Channel by channel, the largest value among the real tokens."""

    name = "max"

    def forward(self, hidden: Stream, keep: Real | None) -> Pooled:
        if keep is None:
            return reduce(hidden, "batch seq d_model -> batch d_model", "max")
        real = rearrange(keep, "batch seq -> batch seq 1")
        some = reduce(keep.to(hidden.dtype), "batch seq -> batch 1", "max").bool()
        # A sequence without real tokens has zero states, whose maximum is the 0 that it must read.
        hidden = hidden.masked_fill(~real & rearrange(some, "batch 1 -> batch 1 1"), float("-inf"))
        return reduce(hidden, "batch seq d_model -> batch d_model", "max")
