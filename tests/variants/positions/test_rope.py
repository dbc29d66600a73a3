"""Rotary position embedding."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from einops import rearrange
from torch import Tensor

from registry import ConfigError, build_encoder
from tests.messages import Messages
from variants import Dims
from variants.positions import RoPE


def rope(d_head: int = 4, n_heads: int = 1, **options: Any) -> RoPE:
    dims = Dims(d_model=d_head * n_heads, n_heads=n_heads, d_head=d_head, n_layers=1)
    return RoPE(dims, **options)


def turned(heads: Tensor, *index: int, **options: Any) -> Tensor:
    """(heads, seq, d_head), with each token at its index."""
    part = rope(heads.shape[-1], heads.shape[0], **options)
    at = torch.tensor([index])
    return part.rotate(heads.unsqueeze(0), heads.unsqueeze(0), at, at)[0][0]


@pytest.mark.parametrize(
    ("pairing", "vector", "expected"),
    [
        ("neighbours", [1.0, 0.0, 0.0, 0.0], [0.5403, 0.8415, 0.0, 0.0]),
        ("neighbours", [1.0, 2.0, 3.0, 4.0], [-1.1426, 1.9221, 2.9599, 4.0298]),
        ("halves", [1.0, 0.0, 0.0, 0.0], [0.5403, 0.0, 0.8415, 0.0]),
        ("halves", [1.0, 2.0, 3.0, 4.0], [-1.9841, 1.9599, 2.4624, 4.0198]),
    ],
)
def test_the_two_channels_of_a_pair_turn_together(
    pairing: str, vector: list[float], expected: list[float]
) -> None:
    out = turned(torch.tensor([[vector]]), 1, pairing=pairing)
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


def test_the_two_pairings_are_one_permutation_of_channels_apart() -> None:
    heads = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0)).double()
    halves = rearrange(heads, "head seq (pair two) -> head seq (two pair)", two=2)
    out = turned(halves, 0, 5, 900, pairing="halves")
    expected = turned(heads, 0, 5, 900)
    back = rearrange(out, "head seq (two pair) -> head seq (pair two)", two=2)
    torch.testing.assert_close(back, expected, rtol=0, atol=1e-12)


def test_a_quarter_of_a_head_turns_as_a_head_of_that_width_would_and_the_rest_stays() -> None:
    heads = torch.randn(2, 3, 16, generator=torch.Generator().manual_seed(0))
    out = turned(heads, 1, 2, 70, fraction=0.25)
    torch.testing.assert_close(out[..., :4], turned(heads[..., :4], 1, 2, 70))
    assert torch.equal(out[..., 4:], heads[..., 4:])


TABLE = Path(__file__).with_name("rope_frequencies.csv")
SIXTEEN_TIMES: dict[str, dict[str, Any]] = {
    "none": {},
    "linear": {"scaling": "linear", "factor": 16.0},
    "ntk": {"scaling": "ntk", "factor": 16.0},
    "yarn": {"scaling": "yarn", "factor": 16.0, "trained_length": 2048},
}


@pytest.mark.parametrize("scaling", SIXTEEN_TIMES)
def test_frequencies_of_a_head_of_64_channels_made_sixteen_times_longer(scaling: str) -> None:
    """Reference: computed from the published rules, for a trained length of 2,048 in YaRN."""
    with TABLE.open() as file:
        expected = [float(row[scaling]) for row in csv.DictReader(file)]
    part = rope(64, **SIXTEEN_TIMES[scaling])
    assert part.frequencies().tolist() == pytest.approx(expected, rel=2e-8)
    assert part.beyond == ("extends" if scaling == "none" else "rescales")


def test_interpolated_positions_are_positions_divided_by_the_factor() -> None:
    heads = torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(0)).double()
    out = turned(heads, 0, 8, 400, scaling="linear", factor=4.0)
    torch.testing.assert_close(out, turned(heads, 0, 2, 100), rtol=0, atol=1e-12)


def test_yarn_sharpens_scores_by_the_square_of_its_temperature() -> None:
    heads = torch.randn(1, 3, 64, generator=torch.Generator().manual_seed(0)).double()
    norms = turned(heads, 0, 9, 4000, **SIXTEEN_TIMES["yarn"]).norm(dim=-1)
    torch.testing.assert_close(norms, 1.27725887222 * heads.norm(dim=-1))
    part = rope(64, fraction=0.5, **SIXTEEN_TIMES["yarn"])
    at = torch.zeros(1, 3, dtype=torch.long)
    half = part.rotate(heads.unsqueeze(0), heads.unsqueeze(0), at, at)[0][0]
    torch.testing.assert_close(half[..., :32], 1.27725887222 * heads[..., :32])
    assert torch.equal(half[..., 32:], heads[..., 32:])


def test_yarn_works_for_trained_lengths_shorter_than_a_turn() -> None:
    for length in (1, 4, 16):
        part = rope(8, scaling="yarn", factor=2.0, trained_length=length)
        assert part.frequencies().isfinite().all()
        assert part.frequencies()[-1] == pytest.approx(10_000 ** (-6 / 8) / 2)


@pytest.mark.parametrize(
    "options",
    [
        {"fraction": 0.375},
        {"fraction": 0.01},
        {"fraction": 1.5},
        {"factor": 2.0},
        {"scaling": "linear"},
        {"scaling": "ntk", "factor": 0.5},
        {"trained_length": 9},
        {"scaling": "yarn", "factor": 2.0},
        {"scaling": "yarn", "factor": 2.0, "trained_length": 0},
        {"scaling": "ntk", "factor": 2.0, "fraction": 0.25},
        {"pairing": "half"},
    ],
)
def test_options_that_cannot_be_or_do_nothing_are_refused(
    messages: Messages, options: dict[str, Any]
) -> None:
    with messages.raises(ConfigError):
        build_encoder({"d_model": 8, "n_heads": 1, "position": {"name": "rope", **options}})


def test_a_head_of_two_channels_works_and_an_odd_one_is_refused(messages: Messages) -> None:
    out = turned(torch.tensor([[[1.0, 0.0]]]), 2)
    torch.testing.assert_close(out, torch.tensor([[[math.cos(2), math.sin(2)]]]))
    with messages.raises(ConfigError):
        build_encoder({"d_model": 520, "n_heads": 8, "position": "rope"})


def test_theta_is_positive(messages: Messages) -> None:
    with messages.raises(ValueError):
        RoPE(Dims(4, 1, 4, 1), theta=-1.0)
