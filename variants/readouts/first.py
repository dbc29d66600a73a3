"""Read the first token."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from variants.readouts.readout import Readout


class First(Readout):
    """The state of the first real token, as BERT reads its classification token.

    Source: Devlin et al. 2019, section 3 (arXiv:1810.04805).
    """

    name = "first"

    def forward(
        self,
        hidden: Float[Tensor, "batch seq d_model"],
        keep: Bool[Tensor, "batch seq"] | None,
    ) -> Float[Tensor, "batch d_model"]:
        if keep is None:
            return hidden[:, 0]
        row = torch.arange(hidden.shape[0], device=hidden.device)
        return hidden[row, keep.to(torch.uint8).argmax(dim=-1)]
