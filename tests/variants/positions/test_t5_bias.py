"""T5's bucketed relative bias."""

from typing import Any

import pytest
import torch

from registry import build_encoder
from tests.messages import Messages
from variants import Dims
from variants.positions import T5Bias

# The first distance of each bucket, worked out by hand from the published rule.
BOTH_SIDES = [*range(8), 8, 12, 16, 23, 32, 46, 64, 91]
ONE_SIDE = [*range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]


def t5(n_heads: int = 1, **options: Any) -> T5Bias:
    return T5Bias(Dims(n_heads, n_heads, 1, 1), **options)


def bucket_of(distance: int, firsts: list[int]) -> int:
    return max(bucket for bucket, first in enumerate(firsts) if first <= distance)


def test_eight_buckets_up_to_a_distance_of_twenty_are_known() -> None:
    buckets = t5(num_buckets=8, max_distance=20).bucket(torch.arange(-8, 9))
    assert buckets.tolist() == [3, 3, 2, 2, 2, 2, 2, 1, 0, 5, 6, 6, 6, 6, 6, 7, 7]


def test_both_sides_have_sixteen_of_thirty_two_buckets() -> None:
    relative = range(-200, 201)
    buckets = t5().bucket(torch.tensor(relative)).tolist()
    assert buckets == [bucket_of(abs(r), BOTH_SIDES) + 16 * (r > 0) for r in relative]


def test_one_side_has_all_thirty_two_buckets() -> None:
    relative = range(-200, 201)
    buckets = t5(bidirectional=False).bucket(torch.tensor(relative)).tolist()
    assert buckets == [bucket_of(max(-r, 0), ONE_SIDE) for r in relative]


def test_the_bias_of_a_cell_is_the_entry_of_its_bucket() -> None:
    part = t5(n_heads=3)
    with torch.no_grad():
        part.table.copy_(torch.arange(96.0).reshape(32, 3))
    bias = part.bias(torch.arange(300).unsqueeze(0), torch.arange(300).unsqueeze(0))
    assert bias.shape == (1, 3, 300, 300)
    assert bias[0, :, 5, 5].tolist() == [0, 1, 2]
    assert bias[0, :, 5, 6].tolist() == [17 * 3, 17 * 3 + 1, 17 * 3 + 2]
    assert bias[0, 0, 200, 60] == bias[0, 0, 299, 0] == 15 * 3
    assert bias[0, 0, 0, 128] == bias[0, 0, 0, 299] == 31 * 3


@pytest.mark.parametrize(("per_layer", "tables"), [(False, 1), (True, 2)])
def test_layers_share_one_table_unless_each_is_given_its_own(per_layer: bool, tables: int) -> None:
    config = {"d_model": 12, "n_heads": 3, "n_layers": 2, "position": "t5_bias"}
    encoder = build_encoder({**config, "position_per_layer": per_layer}, seed=0)
    counts = [parameter.numel() for parameter in encoder.positions.parameters()]
    assert counts == [96] * tables


def test_the_table_starts_at_zero() -> None:
    assert t5().table.eq(0).all()


@pytest.mark.parametrize(
    "options",
    [
        {"num_buckets": 6},
        {"num_buckets": 0},
        {"num_buckets": 3, "bidirectional": False},
        {"max_distance": 8},
    ],
)
def test_buckets_that_cannot_be_are_refused(messages: Messages, options: dict[str, Any]) -> None:
    with messages.raises(ValueError):
        t5(**options)
