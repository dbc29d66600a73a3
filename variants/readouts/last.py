import torch

from variants.readouts.readout import Readout
from variants.shapes import Pooled, Real, Stream


class Last(Readout):
    """The state of the last real token."""

    name = "last"

    def forward(self, hidden: Stream, keep: Real | None) -> Pooled:
        if keep is None:
            return hidden[:, -1]
        row = torch.arange(hidden.shape[0], device=hidden.device)
        from_end = keep.flip(-1).to(torch.uint8).argmax(dim=-1)
        return hidden[row, keep.shape[1] - 1 - from_end]
