"""Random walks of a given number of steps up and down."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def chance_of_fall(
    depth: Int[Tensor, "depth 1"], up: Float[Tensor, " walk"], down: Float[Tensor, " walk"]
) -> Float[Tensor, "depth walk"]:
    r"""The chance that a walk, its steps in random order, ever stands `depth` below its start.

    By reflection it is $\binom{N}{d - m} / \binom{N}{d}$ with d steps down of N and depth m,
    and 1 where the walk ends that low anyway.
    """
    rest = (down - depth).clamp(min=0)
    log_ratio = _log_choose(up + down, rest) - _log_choose(up + down, down)
    return torch.where(down - up >= depth, 1.0, log_ratio.exp() * (depth <= down))


def _log_choose(
    total: Float[Tensor, " walk"], chosen: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    return torch.lgamma(total + 1) - torch.lgamma(chosen + 1) - torch.lgamma(total - chosen + 1)
