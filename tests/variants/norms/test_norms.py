"""Norms: their formulas, in every precision."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import registry
from tests.messages import Messages
from variants import Dims
from variants.norms import LayerNorm, Norm, RMSNorm
from variants.norms.dyt import DyT
from variants.norms.none import NoNorm

DIMS = Dims(8, 1, 8, 1)


def filled(norm: Norm) -> Norm:
    """Weights and biases that are not 1 and 0."""
    with torch.no_grad():
        for number, parameter in enumerate(norm.parameters()):
            parameter.copy_(torch.linspace(0.5, 1.5, 8) - number)
    return norm


def layernorm(x: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).square().mean(-1, keepdim=True)
    weight = torch.linspace(0.5, 1.5, 8).to(x)
    return (x - mean) / (variance + 1e-5).sqrt() * weight + (weight - 1)


def rmsnorm(x: Tensor) -> Tensor:
    size = (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return x / size * torch.linspace(0.5, 1.5, 8).to(x)


def dyt(x: Tensor) -> Tensor:
    weight = torch.linspace(0.5, 1.5, 8).to(x)
    return (0.8 * x).tanh() * weight + (weight - 1)


FORMULAS = [(LayerNorm, layernorm), (RMSNorm, rmsnorm)]
each_formula = pytest.mark.parametrize(("norm", "formula"), FORMULAS)
each_norm = pytest.mark.parametrize("name", list(registry.norms))


@each_formula
def test_a_norm_is_its_formula(norm: type[Norm], formula: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0)).double()
    torch.testing.assert_close(filled(norm(DIMS)).double()(x), formula(x))


@each_norm
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_small_states_are_normalized_in_half_precision(name: str, dtype: torch.dtype) -> None:
    norm = registry.norms[name](Dims(32, 1, 32, 1))
    x = (torch.randn(16, 32, generator=torch.Generator().manual_seed(0)) * 0.05).to(dtype)
    expected = norm(x.float())
    out = norm.to(dtype)(x)
    assert out.dtype == dtype
    assert (out.float() - expected).norm() / expected.norm() < 1e-2


def test_dynamic_tanh_is_its_formula_with_one_learned_slope(messages: Messages) -> None:
    norm = DyT(DIMS, alpha=0.8)
    with torch.no_grad():
        norm.weight.copy_(torch.linspace(0.5, 1.5, 8))
        norm.get_parameter("bias").copy_(torch.linspace(0.5, 1.5, 8) - 1)
    x = 3 * torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0)).double()
    torch.testing.assert_close(norm.double()(x), dyt(x), rtol=1e-6, atol=1e-6)
    assert norm.alpha.shape == ()
    with messages.raises(ValueError):
        DyT(DIMS, alpha=0.0)


def test_no_norm_is_the_identity() -> None:
    x = torch.randn(3, 8)
    assert NoNorm(DIMS)(x) is x
    assert list(NoNorm(DIMS).parameters()) == []


@each_norm
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_squares_beyond_half_precision_do_not_overflow(name: str, dtype: torch.dtype) -> None:
    norm = registry.norms[name](DIMS)
    x = torch.tensor([[300.0, -300, 300, 300, -300, 300, 300, 300]])
    out = norm.to(dtype)(x.to(dtype))
    torch.testing.assert_close(out.float(), norm.float()(x), rtol=1e-2, atol=1e-2)


def test_rows_of_three_hundred_are_known() -> None:
    x = torch.tensor([[300.0] * 7 + [-300]])
    expected = torch.tensor([[0.3780] * 7 + [-2.6458]])  # ±600/8 from the mean, over its spread
    torch.testing.assert_close(LayerNorm(DIMS)(x), expected, rtol=0, atol=1e-4)
    torch.testing.assert_close(RMSNorm(DIMS)(x), x / 300, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["layernorm", "rmsnorm", "batchnorm"])
@pytest.mark.parametrize("rows", [[1e30, -1e30, 2e30, 0.0], [-3e38, 3e38, 1.0, 1.0]])
def test_states_whose_squares_overflow_are_lost_aloud(name: str, rows: list[float]) -> None:
    x = torch.tensor([rows, [0.0, 0.0, 0.0, 0.0]])
    out = registry.norms[name](Dims(4, 1, 4, 1)).train()(x)
    assert out[0, :2].isnan().all()
    assert name == "batchnorm" or out[1].eq(0).all()


@each_norm
def test_states_as_large_as_squares_allow_are_normalized(name: str) -> None:
    x = 1e18 * torch.tensor([[1.0, -1, 2, 0], [3, 1, -1, 1]])
    norm = registry.norms[name](Dims(4, 1, 4, 1))
    torch.testing.assert_close(norm(x).double(), norm.double()(x.double()))


@each_norm
def test_a_row_of_zeros_stays_finite_with_its_gradient(name: str) -> None:
    x = torch.zeros(2, 8, requires_grad=True)
    out = registry.norms[name](DIMS)(x)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert out.eq(0).all()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", ["layernorm", "rmsnorm", "batchnorm"])
def test_eps_is_positive(messages: Messages, name: str) -> None:
    with messages.raises(ValueError):
        registry.norms[name](DIMS, eps=0.0)


@pytest.mark.parametrize("name", [name for name in registry.norms if name != "none"])
def test_a_model_without_biases_has_none_in_its_norms(name: str) -> None:
    norm = registry.norms[name](Dims(8, 1, 8, 1, bias=False))
    found = {name for name, _ in norm.named_parameters()}
    assert "weight" in found
    assert "bias" not in found
    assert norm(torch.randn(3, 8)).shape == (3, 8)


@each_formula
def test_a_norm_is_that_of_torch_forward_and_backward(norm: Any, formula: Any) -> None:
    own = {LayerNorm: nn.LayerNorm, RMSNorm: nn.RMSNorm}[norm](8, eps=1e-5)
    ours = filled(norm(DIMS))
    own.load_state_dict(ours.state_dict())
    inputs = [torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0)) for _ in range(2)]
    outputs = [layer(x.requires_grad_()) for layer, x in zip((ours, own), inputs, strict=True)]
    torch.testing.assert_close(outputs[0], outputs[1], rtol=1e-5, atol=1e-5)
    for out in outputs:
        (out * torch.arange(8)).sum().backward()
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad, rtol=1e-5, atol=1e-5)


@each_norm
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_in_half_precision_stay_near_those_in_single(
    name: str, dtype: torch.dtype
) -> None:
    norm, x = registry.norms[name](Dims(32, 1, 32, 1)), torch.linspace(-300, 300, 320)
    weight = torch.arange(32).cos()
    gradients = []
    for precision in (torch.float32, dtype):
        given = x.reshape(10, 32).to(precision).requires_grad_()
        (norm.to(precision)(given) * weight.to(precision)).sum().backward()
        assert given.grad is not None
        gradients.append(given.grad.float())
    assert gradients[1].isfinite().all()
    assert (gradients[1] - gradients[0]).norm() <= 0.05 * gradients[0].norm() + 1e-6
