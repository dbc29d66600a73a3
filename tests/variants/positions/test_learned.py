"""Learned absolute positions."""

import pytest
import torch

from registry import build_encoder
from variants import Dims, Encoder
from variants.positions import Learned
from variants.positions.position import BeyondTableError


def encoder() -> Encoder:
    position = {"name": "learned", "max_length": 8}
    return build_encoder({"d_model": 8, "n_heads": 1, "n_layers": 1, "position": position}, seed=0)


def test_the_longest_length_works_and_the_next_is_refused() -> None:
    assert encoder()(torch.zeros(1, 8, 8)).hidden.isfinite().all()
    with pytest.raises(BeyondTableError, match=r"learned .* max_length=8; .* length 9"):
        encoder()(torch.zeros(1, 9, 8))


def test_an_index_beyond_the_table_is_refused_at_any_length() -> None:
    index = torch.tensor([[0, 7]])
    assert encoder()(torch.zeros(1, 2, 8), positions=index).hidden.isfinite().all()
    with pytest.raises(BeyondTableError, match=r"learned .* max_length=8; .* length 11"):
        encoder()(torch.zeros(1, 2, 8), positions=index + 3)


def test_each_index_has_its_row() -> None:
    part = Learned(Dims(4, 1, 4, 1), max_length=3)
    index = torch.tensor([[2, 0], [1, 1]])
    assert torch.equal(part.embed(index), part.table.weight[index])


def test_a_table_has_at_least_one_row() -> None:
    with pytest.raises(ValueError, match="max_length must be at least 1; got max_length=0"):
        Learned(Dims(4, 1, 4, 1), max_length=0)
