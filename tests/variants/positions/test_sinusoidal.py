"""Sinusoidal position encoding."""

from typing import Any

import pytest
import torch
from torch import Tensor

from registry import build_encoder
from tests.messages import Messages
from variants import Dims
from variants.positions import Sinusoidal


def rows(width: int, *index: int, **options: Any) -> Tensor:
    return Sinusoidal(Dims(width, 1, width, 1), **options).embed(torch.tensor([index]))[0]


def test_the_row_of_index_one_is_known() -> None:
    expected = [0.841471, 0.540302, 0.046399, 0.998923, 0.002154, 0.999998]
    assert rows(6, 1)[0].tolist() == pytest.approx(expected, abs=1e-6)
    assert rows(6, 0)[0].tolist() == [0, 1, 0, 1, 0, 1]


def test_sines_come_before_cosines_when_concatenated() -> None:
    expected = [0.841471, 0.046399, 0.002154, 0.540302, 0.998923, 0.999998]
    assert rows(6, 1, layout="concatenated")[0].tolist() == pytest.approx(expected, abs=1e-6)
    assert rows(6, 0, layout="concatenated")[0].tolist() == [0, 0, 0, 1, 1, 1]


def test_every_row_has_the_same_length_and_products_depend_on_distance() -> None:
    table = rows(16, 0, 1, 5, 6, 1000, 1005)
    torch.testing.assert_close(table.square().sum(-1), torch.full((6,), 8.0).double())
    near, far = (table[0] * table[2]).sum(), (table[4] * table[5]).sum()
    torch.testing.assert_close((table[1] * table[3]).sum(), near, rtol=0, atol=1e-9)
    torch.testing.assert_close(far, near, rtol=0, atol=1e-9)


def test_each_token_gets_the_row_of_its_own_index() -> None:
    encoder = build_encoder(
        {"d_model": 6, "n_heads": 1, "n_layers": 1, "position": "sinusoidal"}, seed=0
    )
    seen: list[Tensor] = []
    encoder.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    for batch in (3, 4):
        encoder(torch.zeros(batch, 4, 6))
        torch.testing.assert_close(seen[-1], rows(6, 0, 1, 2, 3).float().expand(batch, 4, 6))


def test_rows_are_exact_far_out_in_a_half_precision_model() -> None:
    encoder = build_encoder(
        {"d_model": 16, "n_heads": 1, "n_layers": 1, "position": "sinusoidal"}, seed=0
    ).bfloat16()
    seen: list[Tensor] = []
    encoder.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    inputs, index = torch.zeros(1, 3, 16).bfloat16(), torch.tensor([[4094, 4095, 4096]])
    encoder(inputs, positions=index)
    torch.testing.assert_close(seen[0][0], rows(16, 4094, 4095, 4096).bfloat16())
    assert len(set(map(tuple, seen[0][0].tolist()))) == 3


def test_an_odd_width_and_a_base_below_zero_are_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        rows(7, 1)
    with messages.raises(ValueError):
        Sinusoidal(Dims(4, 1, 4, 1), base=0.0)
