"""Feed-forward layers: their formulas, their sizes."""

import math

import pytest
import torch
from torch import nn

import registry
from variants import Dims
from variants.feedforwards import GELU, FeedForward, ReLU, SwiGLU

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


@pytest.mark.parametrize(("x", "expected"), [(1.0, 0.8413447), (-2.7, -0.00936093), (0.0, 0.0)])
def test_gelu_is_the_exact_one(x: float, expected: float) -> None:
    assert activation(GELU, x) == pytest.approx(expected, abs=1e-6)
    assert expected == pytest.approx(x * (1 + math.erf(x / math.sqrt(2))) / 2, abs=1e-6)


@pytest.mark.parametrize(("x", "expected"), [(1.5, 1.5), (-1.5, 0.0)])
def test_relu_keeps_what_is_above_zero(x: float, expected: float) -> None:
    assert activation(ReLU, x) == expected


@pytest.mark.parametrize("x", [2.0, -1.0])
def test_swiglu_gates_its_input(x: float) -> None:
    assert activation(SwiGLU, x) == pytest.approx(x * x / (1 + math.exp(-x)), abs=1e-6)


def test_swiglu_gates_one_projection_by_another() -> None:
    layer = SwiGLU(Dims(3, 1, 3, 1), d_ff=5)
    x = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    gate, hidden = layer.to_gate(x), layer.to_hidden(x)
    torch.testing.assert_close(layer(x), layer.to_model(gate / (1 + (-gate).exp()) * hidden))


@pytest.mark.parametrize(
    ("layer", "options", "weights"),
    [
        (ReLU, {"d_ff": 256}, 32768),
        (GELU, {"d_ff": 256}, 32768),
        (GELU, {}, 32768),
        (SwiGLU, {"d_ff": 256}, 49152),
        (SwiGLU, {}, 32832),
    ],
)
def test_widths_cost_what_they_say(
    layer: type[FeedForward], options: dict[str, int], weights: int
) -> None:
    built = layer(Dims(64, 4, 16, 2, bias=False), **options)
    assert sum(parameter.numel() for parameter in built.parameters()) == weights


@pytest.mark.parametrize("name", list(registry.feedforwards))
def test_tokens_do_not_see_one_another(name: str) -> None:
    layer = registry.feedforwards[name](Dims(8, 1, 8, 1))
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    alone = torch.stack([layer(x[:, t]) for t in range(5)], dim=1)
    torch.testing.assert_close(layer(x), alone)


@pytest.mark.parametrize("name", list(registry.feedforwards))
def test_a_width_is_positive(name: str) -> None:
    with pytest.raises(ValueError, match="d_ff must be at least 1; got d_ff=0"):
        registry.feedforwards[name](Dims(8, 1, 8, 1), d_ff=0)
