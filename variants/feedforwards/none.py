import torch

from variants.feedforwards.feedforward import FeedForward
from variants.shapes import States


class NoFeedForward(FeedForward):
    """Nothing: a block is attention alone, without the norms that would join a second sublayer.

    By itself it returns 0, which adds nothing to the residual stream.

    Source: the attention-only models of Arora et al. 2023 (arXiv:2312.04927).
    """

    name = "none"
    absent = True

    def forward(self, x: States) -> States:
        return torch.zeros_like(x)
