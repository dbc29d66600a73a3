"""Initializers against the distributions that they name."""

import math

import pytest
import torch
from torch import Tensor, nn

import registry
from registry import build_encoder
from registry.build import seed_of
from tests.messages import Messages
from variants import Dims
from variants.initializers import Initializer, Normal, TorchDefault, Xavier
from variants.initializers.deepnorm import DeepNormInit
from variants.initializers.gpt2 import GPT2
from variants.initializers.kaiming import Kaiming
from variants.initializers.lecun import LeCun
from variants.initializers.small_init import SmallInit
from variants.initializers.t5 import T5

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
        (DeepNormInit(DIMS), math.sqrt(2 / 500), math.inf),
        (SmallInit(DIMS), math.sqrt(2 / (5 * 64)), math.inf),
        (Kaiming(DIMS), math.sqrt(2 / 400), math.inf),
        (GPT2(DIMS), 0.02, math.inf),
        (GPT2(DIMS, std=0.1), 0.1, math.inf),
        (LeCun(DIMS), 0.8796 / 20, 2 / 20),
        (T5(DIMS), 1 / 20, math.inf),
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
    ("initializer", "std"),
    [
        (Xavier(DIMS), 1 / 8),
        (TorchDefault(DIMS), 1.0),
        (Normal(DIMS), 0.02),
        (DeepNormInit(DIMS), 1 / 8),
        (SmallInit(DIMS), math.sqrt(2 / (5 * 64))),
        (Kaiming(DIMS), 1 / 8),
        (GPT2(DIMS), 0.02),
        (LeCun(DIMS), 0.8796 * 0.02),
        (LeCun(DIMS, table_std=1.0), 0.8796),
        (T5(DIMS), 1.0),
    ],
)
def test_tables_are_normal_with_the_spread_that_is_told(
    initializer: Initializer, std: float
) -> None:
    assert table(initializer).std().item() == pytest.approx(std, rel=0.02)


@pytest.mark.parametrize(
    ("name", "bound"), [(name, 0.1 * (name == "torch_default")) for name in registry.initializers]
)
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


@pytest.mark.parametrize(
    ("name", "option"), [("normal", "std"), ("gpt2", "std"), ("lecun", "table_std")]
)
def test_a_spread_is_positive(messages: Messages, name: str, option: str) -> None:
    with messages.raises(ValueError):
        registry.initializers[name](DIMS, **{option: 0.0})


GAINS: dict[str, dict[str, float]] = {
    "gpt2": {"attention.to_model": 1 / 4, "feedforward.to_model": 1 / 4},
    "t5": {"attention.to_q": 1 / 4},
    "deepnorm": {
        "attention.to_v": 64**-0.25,
        "attention.to_model": 64**-0.25,
        "feedforward.to_hidden": 64**-0.25,
        "feedforward.to_gate": 64**-0.25,
        "feedforward.to_model": 64**-0.25,
    },
}
"""For eight layers of d_head 16; every other map has gain 1."""


@pytest.mark.parametrize("name", list(registry.initializers))
def test_maps_are_scaled_by_depth_or_role_where_that_is_said(name: str) -> None:
    sizes = {"d_model": 32, "n_heads": 2, "n_layers": 8, "n_classes": 3, "bias": False}
    built = build_encoder({**sizes, "feedforward": "swiglu", "initializer": name}, seed=0)
    initializer, seen = registry.initializers[name](Dims(32, 2, 16, 8)), set()
    for path, weight in built.named_parameters():
        if weight.ndim != 2:
            continue
        plain = torch.empty_like(weight)
        initializer.matrix(plain, torch.Generator().manual_seed(seed_of(0, "init", path)))
        role = path.removesuffix(".weight").split(".", 2)[-1]
        factor = GAINS.get(name, {}).get(role, 1.0)
        torch.testing.assert_close(weight, plain * factor, msg=path)
        seen.add(role)
    assert {"attention.to_q", "feedforward.to_gate", "head"} <= seen
    assert set(GAINS.get(name, {})) <= seen


def test_the_scores_of_t5_start_with_unit_variance_without_a_scale() -> None:
    """Queries are made smaller by exactly what the scale would have taken away."""
    sizes = {"d_model": 256, "n_heads": 4, "n_layers": 1, "position": "none", "bias": False}
    attention = {"name": "explicit", "scale": "none"}
    built = build_encoder({**sizes, "initializer": "t5", "attention": attention}, seed=0)
    x = torch.randn(64, 8, 256, generator=torch.Generator().manual_seed(0))
    weights = built(x, need_weights=True).weights
    assert weights is not None
    logs = weights[0].log()
    spread = (logs - logs.mean(-1, keepdim=True)).std().item()
    assert spread == pytest.approx(1.0, rel=0.1)
