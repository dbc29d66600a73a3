"""Attention with linear biases."""

import pytest
import torch

from variants import Dims
from variants.positions import ALiBi

EIGHT = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
SLOPES = {
    1: [1 / 256],
    2: [1 / 16, 1 / 256],
    3: [1 / 16, 1 / 256, 1 / 4],
    4: [1 / 4, 1 / 16, 1 / 64, 1 / 256],
    6: [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8],
    8: EIGHT,
    12: [*EIGHT, 0.707107, 0.353553, 0.176777, 0.088388],
}


def alibi(n_heads: int) -> ALiBi:
    return ALiBi(Dims(d_model=n_heads, n_heads=n_heads, d_head=1, n_layers=1))


@pytest.mark.parametrize(("n_heads", "slopes"), SLOPES.items())
def test_slopes_follow_the_published_rule(n_heads: int, slopes: list[float]) -> None:
    bias = alibi(n_heads).bias(torch.tensor([[0]]), torch.tensor([[1]]))
    assert (-bias).flatten().tolist() == pytest.approx(slopes, abs=1e-6)


def test_the_bias_grows_with_the_distance_on_both_sides() -> None:
    index = torch.arange(5).unsqueeze(0)
    bias = alibi(8).bias(index, index)
    assert (2 * bias[0, 0, 2]).tolist() == [-2, -1, 0, -1, -2]
    assert torch.equal(bias, bias.mT)
    assert bias.diagonal(dim1=-2, dim2=-1).eq(0).all()
    assert bias.le(0).all()


def test_under_a_causal_mask_the_bias_agrees_with_its_form_by_key_index() -> None:
    index = torch.arange(5).unsqueeze(0)
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    symmetric = alibi(8).bias(index, index)[0, 0]
    by_key = (0.5 * torch.arange(5.0)).expand(5, 5)
    future = torch.ones(5, 5).triu(1).bool()

    def weights(bias: torch.Tensor, masked: bool) -> torch.Tensor:
        biased = scores + bias
        return (biased.masked_fill(future, -torch.inf) if masked else biased).softmax(-1)

    torch.testing.assert_close(weights(symmetric, True), weights(by_key, True))
    assert (weights(symmetric, False) - weights(by_key, False)).abs().max() > 1e-2


def test_distances_are_exact_far_out() -> None:
    bias = alibi(8).bias(torch.tensor([[0]]), torch.tensor([[4095, 4096, 4097]]))
    assert (-2 * bias[0, 0, 0]).tolist() == [4095, 4096, 4097]
