"""Kernelized relative positions."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from variants import Dims
from variants.positions import KERPLE

INDEX = torch.arange(6).unsqueeze(0)


def kerple(p: Any, a: Any, **options: Any) -> KERPLE:
    part = KERPLE(Dims(4, 2, 2, 1), **options).double()
    with torch.no_grad():
        part.p.copy_(torch.tensor(p))
        part.a.copy_(torch.tensor(a))
    return part


def row(part: KERPLE) -> Tensor:
    """(head, key) for the query at index 2."""
    return part.bias(INDEX, INDEX)[0, :, 2]


def test_the_logarithmic_kernel() -> None:
    out = row(kerple([[0.5, 2.0]], [[1.0, 0.25]]))
    expected = [
        [-p * math.log(1 + a * abs(key - 2)) for key in range(6)] for p, a in ((0.5, 1), (2, 0.25))
    ]
    torch.testing.assert_close(out, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def test_the_power_kernel() -> None:
    out = row(kerple([[1.0, 0.5]], [[0.25, 2.0]], kernel="power"))
    expected = [[-a * abs(key - 2) ** p for key in range(6)] for p, a in ((1, 0.25), (0.5, 2))]
    torch.testing.assert_close(out, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def test_a_power_of_one_is_alibi() -> None:
    out = kerple([[1.0, 1.0]], [[0.0625, 0.015625]], kernel="power").bias(INDEX, INDEX)
    away = (INDEX - INDEX.mT).abs()
    torch.testing.assert_close(out[0, 0], -away / 16.0, check_dtype=False)
    torch.testing.assert_close(out[0, 1], -away / 64.0, check_dtype=False)


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_each_side_may_have_a_kernel_of_its_own(kernel: Any) -> None:
    p, a = [[0.5] * 2, [1.5] * 2], [[1.0] * 2, [2.0] * 2]
    both = row(kerple(p, a, kernel=kernel, sides="separate"))
    before = row(kerple([[0.5] * 2], [[1.0] * 2], kernel=kernel))
    after = row(kerple([[1.5] * 2], [[2.0] * 2], kernel=kernel))
    assert torch.equal(both, torch.cat([before[:, :3], after[:, 3:]], dim=1))


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_parameters_beyond_their_limits_count_as_the_limit_and_still_learn(kernel: Any) -> None:
    part = kerple([[-3.0, 0.0]], [[-1.0, 0.0]], kernel=kernel)
    at_limit = kerple([[0.01, 0.01]], [[0.01, 0.01]], kernel=kernel)
    torch.testing.assert_close(row(part), row(at_limit))
    row(part).sum().backward()
    for parameter in part.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert parameter.grad.ne(0).all()


def test_a_power_counts_as_two_at_most() -> None:
    steep = kerple([[5.0, 2.0]], [[1.0, 1.0]], kernel="power")
    assert torch.equal(*row(steep))


def test_the_start_is_drawn_within_the_published_ranges() -> None:
    torch.manual_seed(0)
    part = KERPLE(Dims(600, 600, 1, 1))
    assert 0 <= part.p.min() < 0.02 < 1.98 < part.p.max() <= 2
    assert 0 <= part.a.min() < 0.01 < 0.99 < part.a.max() <= 1


def test_the_facts_follow_the_sides() -> None:
    assert not KERPLE(Dims(4, 2, 2, 1)).sees_direction
    assert KERPLE(Dims(4, 2, 2, 1), sides="separate").sees_direction
