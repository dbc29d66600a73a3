import torch

from variants.readouts.readout import Readout
from variants.shapes import Pooled, Real, Stream


class First(Readout):
    """The state of the first real token, as BERT reads its classification token.

    Source: Devlin et al. 2019, section 3 (arXiv:1810.04805).
    """

    name = "first"

    def forward(self, hidden: Stream, keep: Real | None) -> Pooled:
        if keep is None:
            return hidden[:, 0]
        row = torch.arange(hidden.shape[0], device=hidden.device)
        return hidden[row, keep.to(torch.uint8).argmax(dim=-1)]
