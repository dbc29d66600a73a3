"""Multi-head attention: which head owns which channels."""

import torch
from torch import nn

from variants import Dims, MultiHeadAttention
from variants.attentions import Explicit
from variants.masks import Full, Sizes
from variants.positions import NoPosition

DIMS = Dims(d_model=8, n_heads=2, d_head=4, n_layers=1)


def attention() -> MultiHeadAttention:
    """Uniform attention over values that are the input itself."""
    built = MultiHeadAttention(DIMS)
    for linear in (built.to_q, built.to_k, built.to_v, built.to_model):
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
    for linear in (built.to_v, built.to_model):
        nn.init.eye_(linear.weight)
    return built


def run(built: MultiHeadAttention, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    backend, position = Explicit(DIMS), NoPosition(DIMS)
    index = torch.arange(x.shape[1]).unsqueeze(0)
    prepared = backend.prepare(Full(), position, index, index, Sizes(1, 2, x.shape[1], x.shape[1]))
    seen: list[torch.Tensor] = []
    out = built(x, position, index, backend, prepared, seen)
    return out, seen[0]


def test_splitting_and_merging_heads_is_the_identity() -> None:
    x = torch.arange(8.0).expand(1, 3, 8)
    out, _ = run(attention(), x)
    torch.testing.assert_close(out, x)


def test_head_h_owns_the_channels_from_h_times_d_head() -> None:
    built, x = attention(), torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for linear in (built.to_q, built.to_k):
            linear.weight[4:].copy_(torch.eye(8)[4:])
    _, weights = run(built, x)
    torch.testing.assert_close(weights[0, 0], torch.full((3, 3), 1 / 3))
    second = x[0, :, 4:]
    torch.testing.assert_close(weights[0, 1], (second @ second.T / 2).softmax(-1))
