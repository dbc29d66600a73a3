"""Feed-forward layers: their formulas, their sizes."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import registry
from registry import build_encoder
from tests.messages import Messages
from variants import Dims
from variants.feedforwards import FeedForward
from variants.feedforwards.geglu import GEGLU
from variants.feedforwards.gelu import GELU
from variants.feedforwards.gelu_tanh import GELUTanh
from variants.feedforwards.linear import LinearFeedForward
from variants.feedforwards.none import NoFeedForward
from variants.feedforwards.reglu import ReGLU
from variants.feedforwards.relu import ReLU
from variants.feedforwards.silu import SiLU
from variants.feedforwards.squared_relu import SquaredReLU
from variants.feedforwards.swiglu import SwiGLU

ONE = Dims(1, 1, 1, 1)


def identity(layer: FeedForward) -> FeedForward:
    """The same layer with width one, weights 1 and biases 0: what is left is its activation."""
    for linear in layer.modules():
        if isinstance(linear, nn.Linear):
            nn.init.ones_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
    return layer


def activation(layer: type[FeedForward], x: float) -> float:
    return identity(layer(ONE, d_ff=1))(torch.tensor([[x]], dtype=torch.float32)).item()  # type: ignore[call-arg]


def phi(x: float) -> float:
    """The normal distribution function."""
    return (1 + math.erf(x / math.sqrt(2))) / 2


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


FORMULAS: dict[type[FeedForward], Callable[[float], float]] = {
    ReLU: lambda x: max(0.0, x),
    GELU: lambda x: x * phi(x),
    GELUTanh: lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    SiLU: lambda x: x * sigmoid(x),
    SquaredReLU: lambda x: max(0.0, x) ** 2,
    LinearFeedForward: lambda x: x,
    SwiGLU: lambda x: x * sigmoid(x) * x,
    GEGLU: lambda x: x * phi(x) * x,
    ReGLU: lambda x: max(0.0, x) * x,
}
each_formula = pytest.mark.parametrize("layer", FORMULAS, ids=lambda layer: layer.name)
GATED = [SwiGLU, GEGLU, ReGLU]
each_gated = pytest.mark.parametrize("layer", GATED, ids=lambda layer: layer.name)


@each_formula
@pytest.mark.parametrize("x", [-2.7, -1.0, -0.3, 0.0, 0.5, 1.0, 2.7])
def test_an_activation_is_its_formula(layer: type[FeedForward], x: float) -> None:
    assert activation(layer, x) == pytest.approx(FORMULAS[layer](x), abs=1e-6)


def test_every_layer_that_has_an_activation_is_tried_here() -> None:
    assert {layer.name for layer in FORMULAS} == {*registry.feedforwards} - {"none"}


def test_the_two_gelus_are_told_apart() -> None:
    assert activation(GELU, 1.0) == pytest.approx(0.8413447, abs=1e-6)
    assert activation(GELUTanh, 1.0) == pytest.approx(0.8411920, abs=1e-6)
    grid = [step / 100 for step in range(-500, 501)]
    apart = [abs(activation(GELU, x) - activation(GELUTanh, x)) for x in grid]
    assert max(apart) == pytest.approx(4.73e-4, abs=1e-6)
    assert abs(grid[apart.index(max(apart))]) == pytest.approx(2.70, abs=0.05)


@each_gated
def test_one_projection_gates_the_other(layer: Any) -> None:
    built = layer(Dims(3, 1, 3, 1), d_ff=5)
    x = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    gate = built.to_gate(x).detach().apply_(lambda one: FORMULAS[layer](one) / one)
    torch.testing.assert_close(built(x), built.to_model(gate * built.to_hidden(x)))
    closed = built.to_gate.weight.data.zero_(), built.to_gate.bias.data.zero_()
    assert all(part.eq(0).all() for part in closed)
    torch.testing.assert_close(built(x), built.to_model.bias.expand(2, 4, 3))


def test_a_linear_layer_is_one_matrix() -> None:
    built = LinearFeedForward(Dims(3, 1, 3, 1, bias=False))
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    one = built.to_model.weight @ built.to_hidden.weight
    torch.testing.assert_close(built(x), x @ one.T)


@pytest.mark.parametrize(
    ("layer", "options", "weights"),
    [
        (ReLU, {"d_ff": 256}, 32768),
        (GELU, {"d_ff": 256}, 32768),
        (GELU, {}, 32768),
        (SquaredReLU, {"d_ff": 256}, 32768),
        (LinearFeedForward, {"d_ff": 256}, 32768),
        (SwiGLU, {"d_ff": 256}, 49152),
        (SwiGLU, {}, 32832),
        (SwiGLU, {"match": "width"}, 49152),
        (SwiGLU, {"d_ff": 256, "match": "width"}, 49152),
        (GEGLU, {"d_ff": 256, "match": "parameters"}, 32832),
        (ReGLU, {"d_ff": 128, "match": "parameters"}, 16320),
    ],
)
def test_widths_cost_what_they_say(
    layer: type[FeedForward], options: dict[str, Any], weights: int
) -> None:
    built = layer(Dims(64, 4, 16, 2, bias=False), **options)
    assert sum(parameter.numel() for parameter in built.parameters()) == weights


@pytest.mark.parametrize("name", list(registry.feedforwards))
def test_tokens_do_not_see_one_another(name: str) -> None:
    layer = registry.feedforwards[name](Dims(8, 1, 8, 1))
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    alone = torch.stack([layer(x[:, t]) for t in range(5)], dim=1)
    torch.testing.assert_close(layer(x), alone)


def test_a_matched_layer_has_the_weights_of_a_plain_one_to_a_percent() -> None:
    for d_model, d_ff in ((64, 256), (96, 384), (512, 2048), (64, 100)):
        dims = Dims(d_model, 1, d_model, 1)
        plain, gated = GELU(dims, d_ff), SwiGLU(dims, d_ff, "parameters")
        sizes = [sum(one.numel() for one in layer.parameters()) for layer in (plain, gated)]
        assert sizes[1] == pytest.approx(sizes[0], rel=0.01)


def test_a_block_without_a_feedforward_layer_is_attention_alone() -> None:
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 2, "feedforward": "none"}
    for placement in registry.norm_placements:
        encoder = build_encoder({**sizes, "norm_placement": placement}, seed=0)
        assert [block.feedforward for block in encoder.blocks] == [None, None]
        x = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0))
        encoder(x).hidden.sum().backward()
        assert all(one.grad is not None for one in encoder.parameters())
    assert NoFeedForward(ONE)(torch.ones(2, 1)).eq(0).all()


@pytest.mark.parametrize("name", [name for name in registry.feedforwards if name != "none"])
def test_a_width_is_positive(messages: Messages, name: str) -> None:
    with messages.raises(ValueError):
        registry.feedforwards[name](Dims(8, 1, 8, 1), d_ff=0)
