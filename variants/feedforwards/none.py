"""No feed-forward layer."""

import torch
from jaxtyping import Float
from torch import Tensor

from variants.feedforwards.feedforward import FeedForward


class NoFeedForward(FeedForward):
    """Nothing: a block is attention alone, without the norms that would join a second sublayer.

    By itself it returns 0, which adds nothing to the residual stream.

    Source: the attention-only models of Arora et al. 2023 (arXiv:2312.04927).
    """

    name = "none"
    absent = True

    def forward(self, x: Float[Tensor, "*any d_model"]) -> Float[Tensor, "*any d_model"]:
        return torch.zeros_like(x)
