"""Initializers against the distributions that they name."""

import math

import pytest
import torch
from torch import Tensor, nn

import registry
from registry import build_encoder
from variants import Dims
from variants.initializers import Initializer, Normal, TorchDefault, Xavier

DIMS = Dims(64, 4, 16, 2)
each_initializer = pytest.mark.parametrize("name", list(registry.initializers))


def matrix(initializer: Initializer) -> Tensor:
    weight = torch.empty(100, 400)
    initializer.matrix(weight, torch.Generator().manual_seed(0))
    return weight


def table(initializer: Initializer) -> Tensor:
    weight = torch.empty(1000, 64)
    initializer.table(weight, torch.Generator().manual_seed(0))
    return weight


@pytest.mark.parametrize(
    ("initializer", "std", "bound"),
    [
        (Xavier(DIMS), math.sqrt(2 / 500), math.sqrt(6 / 500)),
        (TorchDefault(DIMS), 0.05 / math.sqrt(3), 0.05),
        (Normal(DIMS), 0.02, math.inf),
        (Normal(DIMS, std=0.5), 0.5, math.inf),
    ],
)
def test_matrices_have_the_spread_of_their_distribution(
    initializer: Initializer, std: float, bound: float
) -> None:
    weight = matrix(initializer)
    assert weight.std().item() == pytest.approx(std, rel=0.02)
    assert abs(weight.mean().item()) < std / 50
    assert weight.abs().max() <= bound


@pytest.mark.parametrize(
    ("initializer", "std"), [(Xavier(DIMS), 1 / 8), (TorchDefault(DIMS), 1.0), (Normal(DIMS), 0.02)]
)
def test_tables_are_normal_with_the_spread_that_is_told(
    initializer: Initializer, std: float
) -> None:
    assert table(initializer).std().item() == pytest.approx(std, rel=0.02)


@pytest.mark.parametrize(("name", "bound"), [("xavier", 0), ("normal", 0), ("torch_default", 0.1)])
def test_biases_start_where_they_should(name: str, bound: float) -> None:
    bias = torch.full((500,), math.nan)
    registry.initializers[name](DIMS).bias(bias, 100, torch.Generator().manual_seed(0))
    assert bias.abs().max().item() == pytest.approx(bound, rel=0.02)


def test_the_default_of_torch_is_what_its_own_modules_do() -> None:
    own = nn.Linear(400, 100).weight
    assert matrix(TorchDefault(DIMS)).std().item() == pytest.approx(own.std().item(), rel=0.03)


@each_initializer
def test_numbers_come_from_the_generator_alone(name: str) -> None:
    initializer, state = registry.initializers[name](DIMS), torch.get_rng_state()
    assert torch.equal(matrix(initializer), matrix(initializer))
    assert torch.equal(table(initializer), table(initializer))
    assert torch.equal(torch.get_rng_state(), state)


@each_initializer
def test_the_vector_of_the_pad_starts_at_zero(name: str) -> None:
    encoder = build_encoder(
        {"vocab_size": 9, "d_model": 8, "n_heads": 2, "pad_id": 3, "initializer": name}, seed=0
    )
    assert encoder.embedding is not None
    assert [row.any().item() for row in encoder.embedding.table.weight] == [True] * 3 + [False] + [
        True
    ] * 5


def test_a_spread_is_positive() -> None:
    with pytest.raises(ValueError, match=r"std must be positive; got std=0.0"):
        Normal(DIMS, std=0.0)
