"""Sandwich: a bias of sinusoids."""

from typing import Any

import pytest
import torch

from tests.messages import Messages
from variants import Dims
from variants.positions import Sandwich, Sinusoidal


@pytest.mark.parametrize("n_heads", [1, 3, 8])
def test_the_bias_is_the_product_of_two_sinusoidal_encodings(n_heads: int) -> None:
    index = torch.tensor([[0, 1, 2, 17, 4000]])
    rows = Sinusoidal(Dims(128, 1, 128, 1)).embed(index)[0]
    product = rows @ rows.mT - 64
    bias = Sandwich(Dims(n_heads, n_heads, 1, 1)).bias(index, index)[0]
    ratio = 8 * torch.arange(1, n_heads + 1) / n_heads
    expected = product / ratio.reshape(-1, 1, 1)
    torch.testing.assert_close(bias.double(), expected, rtol=1e-5, atol=1e-5)


def test_it_falls_with_the_distance_alike_on_both_sides() -> None:
    index = torch.arange(9).unsqueeze(0)
    bias = Sandwich(Dims(2, 2, 1, 1)).bias(index, index)[0, 0]
    assert torch.equal(bias, bias.mT)
    assert bias.diagonal().eq(0).all()
    assert (bias[0, :-1] > bias[0, 1:]).all()


@pytest.mark.parametrize(
    "options",
    [
        {"width": 7},
        {"width": 0},
        {"base": 0.0},
    ],
)
def test_what_cannot_be_is_refused(messages: Messages, options: dict[str, Any]) -> None:
    with messages.raises(ValueError):
        Sandwich(Dims(2, 2, 1, 1), **options)
