"""Rotary position embedding."""

import math

import pytest
import torch
from torch import Tensor

from registry import ConfigError, build_encoder
from variants import Dims
from variants.positions import RoPE


def rope(d_head: int = 4, n_heads: int = 1) -> RoPE:
    return RoPE(Dims(d_model=d_head * n_heads, n_heads=n_heads, d_head=d_head, n_layers=1))


def turned(heads: Tensor, *index: int) -> Tensor:
    """(heads, seq, d_head), with each token at its index."""
    part = rope(heads.shape[-1], heads.shape[0])
    at = torch.tensor([index])
    return part.rotate(heads.unsqueeze(0), heads.unsqueeze(0), at, at)[0][0]


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        ([1.0, 0.0, 0.0, 0.0], [0.5403, 0.8415, 0.0, 0.0]),
        ([1.0, 2.0, 3.0, 4.0], [-1.1426, 1.9221, 2.9599, 4.0298]),
    ],
)
def test_neighbouring_channels_turn_together(vector: list[float], expected: list[float]) -> None:
    out = turned(torch.tensor([[vector]]), 1)
    torch.testing.assert_close(out, torch.tensor([[expected]]), rtol=0, atol=1e-4)


def test_a_pair_turns_as_a_complex_number() -> None:
    heads = torch.randn(1, 1, 8, generator=torch.Generator().manual_seed(0)).double()
    out = turned(heads, 7)[0, 0].tolist()
    for pair in range(4):
        x, y = heads[0, 0, 2 * pair : 2 * pair + 2].tolist()
        angle = 7 * 10_000 ** (-2 * pair / 8)
        number = complex(x, y) * complex(math.cos(angle), math.sin(angle))
        assert out[2 * pair] == pytest.approx(number.real, abs=1e-12)
        assert out[2 * pair + 1] == pytest.approx(number.imag, abs=1e-12)


def test_index_zero_turns_nothing_and_no_index_changes_a_norm() -> None:
    heads = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(turned(heads, *[0] * 6), heads, rtol=0, atol=0)
    norms = turned(heads, 0, 1, 50, 999, 4096, 100_000).norm(dim=-1)
    torch.testing.assert_close(norms, heads.norm(dim=-1), rtol=1e-6, atol=1e-6)


def test_all_heads_turn_by_the_angle_of_their_token() -> None:
    token = torch.randn(1, 1, 8, generator=torch.Generator().manual_seed(0))
    out = turned(token.expand(4, 6, 8), *range(6))
    torch.testing.assert_close(out, out[:1].expand(4, 6, 8), rtol=0, atol=0)
    assert (out[:, 1:] - out[:, :1]).abs().amin(dim=(0, 1)).max() > 1e-3


def test_a_score_depends_on_the_distance_and_its_sign_alone() -> None:
    q, k = torch.randn(2, 1, 1, 8, generator=torch.Generator().manual_seed(0)).double()

    def score(i: int, j: int) -> float:
        return (turned(q, i) * turned(k, j)).sum().item()

    assert score(3, 1) == pytest.approx(score(103, 101), abs=1e-9)
    assert score(3, 1) == pytest.approx(score(4098, 4096), abs=1e-9)
    assert abs(score(3, 1) - score(1, 3)) > 1e-3


def test_phases_are_exact_far_out_in_a_half_precision_model() -> None:
    ones = torch.ones(1, 1, 8)
    far = turned(ones.bfloat16(), 4095), turned(ones.bfloat16(), 4096)
    for index, half in zip((4095, 4096), far, strict=True):
        expected = turned(ones.double(), index)
        torch.testing.assert_close(half.double(), expected, rtol=0, atol=0.02)
    assert (far[0] - far[1]).abs().max() > 0.5


def test_keys_may_stand_elsewhere_than_queries() -> None:
    heads = torch.randn(1, 1, 2, 4, generator=torch.Generator().manual_seed(0))
    q, k = rope().rotate(heads, heads, torch.tensor([[0, 0]]), torch.tensor([[1, 1]]))
    torch.testing.assert_close(q, heads, rtol=0, atol=0)
    torch.testing.assert_close(k[0], turned(heads[0], 1, 1), rtol=0, atol=0)


def test_a_head_of_two_channels_works_and_an_odd_one_is_refused() -> None:
    out = turned(torch.tensor([[[1.0, 0.0]]]), 2)
    torch.testing.assert_close(out, torch.tensor([[[math.cos(2), math.sin(2)]]]))
    with pytest.raises(ConfigError, match="d_head must be even; got d_head=65"):
        build_encoder({"d_model": 520, "n_heads": 8, "position": "rope"})


def test_theta_is_positive() -> None:
    with pytest.raises(ValueError, match=r"theta must be positive; got theta=-1.0"):
        RoPE(Dims(4, 1, 4, 1), theta=-1.0)
