"""Transformer-XL's relative positions."""

import math

import pytest
import torch
from torch import Tensor

from registry import build_encoder
from tests.messages import Messages
from variants import Dims
from variants.positions import Sinusoidal, TransformerXL


def part(n_heads: int = 2, d_head: int = 4) -> TransformerXL:
    torch.manual_seed(0)
    built = TransformerXL(Dims(n_heads * d_head, n_heads, d_head, 1)).double()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.normal_()
    return built


def heads(n_heads: int, seq: int, d_head: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, n_heads, seq, d_head, generator=generator).double()


def slow(built: TransformerXL, q: Tensor, k: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """The formula read cell by cell, with R from the sinusoidal encoding."""
    n_heads, d_head = built.dims.n_heads, built.dims.d_head
    waves = Sinusoidal(Dims(built.width, 1, built.width, 1), layout="concatenated")
    out = torch.empty(q.shape[0], n_heads, i.shape[1], j.shape[1], dtype=torch.float64)
    for row, head, query, key in torch.cartesian_prod(*map(torch.arange, out.shape)).tolist():
        distance = (i[row, query] - j[row, key]).reshape(1, 1)
        r = built.to_heads(waves.embed(distance)[0, 0]).reshape(n_heads, d_head)[head]
        a, b = q[row, head, query], k[row, head, key]
        out[row, head, query, key] = built.u[head] @ b + (a + built.v[head]) @ r
    return out / math.sqrt(d_head)


@pytest.mark.parametrize(("n_heads", "d_head"), [(2, 4), (3, 5), (1, 1)])
def test_scores_are_the_three_terms_that_plain_attention_lacks(n_heads: int, d_head: int) -> None:
    built = part(n_heads, d_head)
    q, k = heads(n_heads, 3, d_head, 1), heads(n_heads, 4, d_head, 2)
    i, j = torch.tensor([[0, 1, 2], [5, 90, 91]]), torch.tensor([[0, 1, 2, 3], [5, 90, 91, 2000]])
    expected = slow(built, q, k, i, j)
    torch.testing.assert_close(built.scores(q, k, i, j), expected, rtol=0, atol=1e-9)


def test_a_score_depends_on_the_distance_and_its_sign() -> None:
    built, q = part(), heads(2, 1, 4, 1).expand(2, 2, 6, 4)
    index = torch.arange(6).unsqueeze(0)
    here, there = (built.scores(q, q, index + shift, index + shift) for shift in (0, 1000))
    torch.testing.assert_close(here, there, rtol=0, atol=1e-9)
    for offset in range(-4, 5):
        diagonal = here.diagonal(offset, -2, -1)
        torch.testing.assert_close(diagonal, diagonal[..., :1].expand_as(diagonal))
    assert (here - here.mT).abs().max() > 0.1


def test_waves_are_exact_far_out_in_a_half_precision_model() -> None:
    built, q = part().bfloat16(), heads(2, 4, 4, 1).bfloat16()
    index = torch.tensor([[0, 1, 2, 3]])
    near, far = (built.scores(q, q, index + shift, index + shift) for shift in (0, 100_000))
    assert near.dtype == torch.float32
    torch.testing.assert_close(near, far, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("per_layer", "expected"), [(False, 80), (True, 160)])
def test_layers_share_the_map_unless_each_is_given_its_own(per_layer: bool, expected: int) -> None:
    config = {"d_model": 8, "n_heads": 2, "n_layers": 2, "position": "transformer_xl"}
    encoder = build_encoder({**config, "position_per_layer": per_layer}, seed=0)
    assert sum(one.numel() for one in encoder.positions.parameters()) == expected


def test_the_base_is_positive(messages: Messages) -> None:
    with messages.raises(ValueError):
        TransformerXL(Dims(4, 1, 4, 1), base=0.0)
