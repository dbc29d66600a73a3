import torch
from torch import nn

from variants.dims import Dims
from variants.norm_placements.norm_placement import MakeNorm, NormPlacement, Sublayer
from variants.shapes import Stream


class ReZero(NormPlacement):
    """x + a·f(x), with one learned gate a for each sublayer, which starts at 0; no norms at all.

    The untrained encoder is the identity, whatever its depth; gradients reach a sublayer's
    weights once its a has moved.

    Source: Bachlechner et al. 2020 (arXiv:2003.04887).
    """

    name = "rezero"
    waives = {
        "the_stream_is_normalized_once": "it has no norms at all",
        "what_leaves_the_encoder_is_normalized": "it has no norms at all",
    }

    def __init__(self, dims: Dims, make_norm: MakeNorm) -> None:
        super().__init__(dims, make_norm)
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x: Stream, sublayer: Sublayer) -> Stream:
        return x + self.gate * sublayer(x)
