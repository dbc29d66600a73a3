"""Functional interpolation for relative positions."""

import math
from typing import Any

import pytest
import torch

from registry import build_encoder
from tests.messages import Messages
from variants import Dims
from variants.positions import FIRE


def fire(**options: Any) -> FIRE:
    """f(x) = x in the first head and 2x in the second; after the query 3x and 4x."""
    part = FIRE(Dims(4, 2, 2, 1), width=1, **options).double()
    with torch.no_grad():
        part.hidden.weight.fill_(1)
        part.hidden.bias.zero_()
        part.to_heads.bias.zero_()
        part.to_heads.weight.copy_(torch.arange(1, len(part.to_heads.weight) + 1).unsqueeze(1))
    return part


def share(i: int, j: int, threshold: float, c: float = 0.1) -> float:
    """ψ(|i - j|) / ψ(max(i, j, L)), from the definition."""
    return math.log(c * abs(i - j) + 1) / math.log(c * max(i, j, threshold) + 1)


@pytest.mark.parametrize(("i", "j"), [(0, 0), (3, 1), (9, 2), (9, 0), (40, 39)])
def test_before_the_query_the_bias_is_the_papers(i: int, j: int) -> None:
    bias = fire(threshold=8.0).bias(torch.tensor([[i]]), torch.tensor([[j]]))
    expected = share(i, j, 8)
    assert bias.flatten().tolist() == pytest.approx([expected, 2 * expected], rel=1e-5)


def test_after_the_query_it_has_outputs_of_its_own_or_the_same() -> None:
    q, k = torch.tensor([[2]]), torch.tensor([[9]])
    separate, symmetric = (fire(threshold=4.0, sides=one) for one in ("separate", "symmetric"))
    expected = share(2, 9, 4)
    for part, factors in ((separate, (3, 4)), (symmetric, (1, 2))):
        values = [factor * expected for factor in factors]
        assert part.bias(q, k).flatten().tolist() == pytest.approx(values, rel=1e-5)


def test_no_share_exceeds_one_however_long_the_sequence() -> None:
    index = torch.arange(0, 5000, 50).unsqueeze(0)
    bias = fire(threshold=16.0, sides="symmetric").bias(index, index)[0, 0]
    assert 0.999 < bias.max() <= 1
    assert bias.min() == 0


def test_the_threshold_stretches_with_a_learned_factor() -> None:
    part = fire(threshold=8.0)
    with torch.no_grad():
        part.stretch.fill_(-3.0)
    bias = part.bias(torch.tensor([[5]]), torch.tensor([[1]]))
    assert bias[0, 0, 0, 0].item() == pytest.approx(share(5, 1, 24), rel=1e-5)


def test_every_parameter_learns_and_a_c_of_zero_is_finite() -> None:
    part = fire(threshold=8.0)
    with torch.no_grad():
        part.c.zero_()
    index = torch.arange(12).unsqueeze(0)
    bias = part.bias(index, index)
    assert bias.isfinite().all()
    part = FIRE(Dims(4, 2, 2, 1), threshold=8.0)
    part.bias(index, index).square().sum().backward()
    for parameter in part.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().max() > 0


def test_the_perceptron_keeps_torchs_own_start() -> None:
    config = {"d_model": 8, "n_heads": 2, "position": "fire", "initializer": "xavier"}
    part: Any = build_encoder(config, seed=0).positions[0]
    assert part.hidden.bias.ne(0).all()
    assert part.hidden.weight.abs().max() <= 1


def test_near_distances_stay_apart_under_autocast() -> None:
    index = torch.arange(200).unsqueeze(0)
    part = FIRE(Dims(4, 2, 2, 1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        shares = part._share(index[:, -1:], index)[0, 0]
    assert len(set(shares.tolist())) == 200


@pytest.mark.parametrize("options", [{"width": 0}, {"threshold": 0.0}])
def test_width_and_threshold_are_positive(messages: Messages, options: dict[str, Any]) -> None:
    with messages.raises(ValueError):
        FIRE(Dims(4, 2, 2, 1), **options)
