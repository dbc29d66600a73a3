"""Attention with linear biases."""

from typing import Any

import pytest
import torch

from registry import ConfigError, build_encoder
from tests.messages import Messages
from variants import Dims
from variants.positions import ALiBi

# Slopes as powers of one half, from the authors' code.
PAPER = {
    1: [8],
    2: [4, 8],
    3: [4, 8, 2],
    4: [2, 4, 6, 8],
    5: [2, 4, 6, 8, 1],
    6: [2, 4, 6, 8, 1, 3],
    7: [2, 4, 6, 8, 1, 3, 5],
    8: [1, 2, 3, 4, 5, 6, 7, 8],
    9: [1, 2, 3, 4, 5, 6, 7, 8, 0.5],
    10: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5],
    11: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5],
    12: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5],
    13: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5, 4.5],
    14: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5],
    15: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
    16: [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8],
}


def alibi(n_heads: int, **options: Any) -> ALiBi:
    return ALiBi(Dims(d_model=n_heads, n_heads=n_heads, d_head=1, n_layers=1), **options)


def powers(part: Any, key: int = 1) -> list[float]:
    """The slope of each head for a key so far after the query, as a power of one half."""
    bias = part.bias(torch.tensor([[0]]), torch.tensor([[key]])) / abs(key)
    return (-(-bias).log2()).flatten().tolist()


def row(part: ALiBi, length: int = 5) -> list[float]:
    """The bias of the first head, for the token in the middle."""
    index = torch.arange(length).unsqueeze(0)
    return part.bias(index, index)[0, 0, length // 2].tolist()


@pytest.mark.parametrize(("n_heads", "expected"), PAPER.items())
def test_slopes_follow_the_published_rule(n_heads: int, expected: list[float]) -> None:
    assert powers(alibi(n_heads)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n_heads", [1, 3, 4, 6, 12])
def test_the_geometric_rule_has_equal_steps_for_any_number_of_heads(n_heads: int) -> None:
    expected = [8 * head / n_heads for head in range(1, n_heads + 1)]
    assert powers(alibi(n_heads, slopes="geometric")) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n_heads", [1, 2, 4, 6])
def test_a_number_holds_the_slope_of_every_head(n_heads: int) -> None:
    assert powers(alibi(n_heads, slopes=0.25)) == [2] * n_heads


def test_slopes_may_be_told_one_by_one() -> None:
    position = {"name": "alibi", "slopes": [0.5, 0.125]}
    encoder = build_encoder({"d_model": 4, "n_heads": 2, "position": position}, seed=0)
    assert powers(encoder.positions[0]) == [1, 3]


def test_each_way_to_treat_the_sides() -> None:
    half = {"slopes": (0.5, 0.5)}
    assert row(alibi(2, sides="symmetric", **half)) == [-1, -0.5, 0, -0.5, -1]
    assert row(alibi(2, sides="half_offset", **half)) == [-0.75, -0.25, 0, -0.5, -1]
    assert row(alibi(2, sides="causal", **half)) == [-1, -0.5, 0, 0.5, 1]
    two = alibi(2, sides="two_sided", slopes=(0.5, 0.5, 0.25, 2.0))
    assert row(two) == [-1, -0.5, 0, -0.25, -0.5]


@pytest.mark.parametrize(
    ("n_heads", "after"),
    [(1, [4]), (2, [2, 6]), (3, [6, 1, 3]), (4, [1, 3, 5, 7]), (6, [5, 7, 0.5, 1.5, 2.5, 3.5])],
)
def test_two_sides_share_the_slopes_of_twice_the_heads(n_heads: int, after: list[float]) -> None:
    part = alibi(n_heads, sides="two_sided")
    assert powers(part, key=-3) == pytest.approx(PAPER[n_heads], abs=1e-6)
    assert powers(part, key=3) == pytest.approx(after, abs=1e-6)


def test_the_facts_follow_the_sides() -> None:
    sides = ("symmetric", "half_offset", "two_sided", "causal")
    parts = [alibi(2, sides=one) for one in sides]
    assert [part.sees_direction for part in parts] == [False, True, True, True]
    assert [part.causal_only for part in parts] == [False, False, False, True]
    assert not ALiBi.sees_direction
    assert not ALiBi.causal_only


@pytest.mark.parametrize(
    "options",
    [
        {"slopes": 0.0},
        {"slopes": [0.5, -1.0]},
        {"slopes": [0.5]},
        {"slopes": 0.5, "sides": "two_sided"},
        {"slopes": "papr"},
        {"slopes": True},
    ],
)
def test_slopes_that_cannot_be_are_refused_in_one_sentence(
    messages: Messages, options: dict[str, Any]
) -> None:
    with messages.raises(ConfigError) as caught:
        build_encoder({"d_model": 4, "n_heads": 2, "position": {"name": "alibi", **options}})
    assert len(caught.value.problems) == 1


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
