"""Random offsets."""

from collections import Counter
from typing import Any

import pytest
import torch

from registry import ConfigError, build_encoder
from tests.messages import Messages
from variants import Dims
from variants.positions import BeyondTableError, RandomOffset, Sinusoidal

DIMS = Dims(8, 2, 4, 1)


def offset(max_length: int) -> RandomOffset:
    return RandomOffset(DIMS, Sinusoidal(DIMS), max_length)


def test_a_sequence_starts_anywhere_that_it_fits_equally_often() -> None:
    """Chi-squared over 4 starts; the 99.99 % quantile with 3 degrees is 21.1."""
    part, generator, runs = offset(8), torch.Generator().manual_seed(0), 2000
    index = torch.arange(5).unsqueeze(0)
    seen: Counter[int] = Counter()
    for _ in range(runs):
        (row,) = part.place(index, generator).tolist()
        assert row == list(range(row[0], row[0] + 5))
        seen[row[0]] += 1
    assert set(seen) == {0, 1, 2, 3}
    assert sum((count - runs / 4) ** 2 / (runs / 4) for count in seen.values()) < 21.1


def test_a_sequence_has_the_same_offset_in_any_batch() -> None:
    part = offset(100)
    rows = torch.tensor([[0, 1, 2, 3, 4], [0, 1, 2, 2, 2], [0, 0, 0, 1, 2], [0, 1, 0, 1, 2]])
    alone = part.place(torch.arange(3).unsqueeze(0), torch.Generator().manual_seed(0))[0].tolist()
    batch = part.place(rows, torch.Generator().manual_seed(0)).tolist()
    assert batch[1][:3] == batch[2][2:] == batch[3][2:] == alone
    assert alone[0] > 0


def test_a_sequence_of_the_whole_range_is_not_shifted_and_a_longer_one_refused(
    messages: Messages,
) -> None:
    whole = torch.arange(8).unsqueeze(0)
    assert torch.equal(offset(8).place(whole, None), whole)
    with messages.raises(BeyondTableError):
        offset(7).place(whole, None)


@pytest.mark.parametrize(
    "position",
    [
        {"name": "random_offset", "inner": "rope"},
        {"name": "random_offset", "inner": "learned"},
        {"name": "random_offset", "max_length": -1},
    ],
)
def test_what_does_not_fit_is_refused(messages: Messages, position: dict[str, Any]) -> None:
    with messages.raises(ConfigError):
        build_encoder({"d_model": 8, "n_heads": 2, "position": position})


def test_a_learned_table_is_visited_whole() -> None:
    position = {
        "name": "random_offset",
        "inner": {"name": "learned", "max_length": 6},
        "max_length": 6,
    }
    encoder: Any = build_encoder({"d_model": 8, "n_heads": 2, "position": position}, seed=0).train()
    generator, table = torch.Generator().manual_seed(0), encoder.positions[0].inner.table.weight
    for _ in range(20):
        encoder(torch.zeros(1, 2, 8), generator=generator).hidden.square().sum().backward()
    assert table.grad.abs().sum(-1).gt(0).all()
