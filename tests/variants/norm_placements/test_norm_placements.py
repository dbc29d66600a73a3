"""Norm placements: where the norms are."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import registry
from registry import build_encoder
from variants import Dims, Encoder
from variants.norm_placements import NormPlacement, Post, Pre
from variants.norm_placements.deepnorm import DeepNorm
from variants.norm_placements.no_residual import NoResidual
from variants.norm_placements.parallel import Parallel
from variants.norm_placements.rezero import ReZero
from variants.norm_placements.sandwich import Sandwich
from variants.norms import LayerNorm, Norm

DIMS = Dims(8, 2, 4, 3)


def encoder(placement: str, n_layers: int = 3, **changes: Any) -> Encoder:
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": n_layers, "position": "none"}
    return build_encoder({**sizes, "norm_placement": placement, **changes}, seed=0)


def inputs(scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))


def silence(built: Encoder) -> Encoder:
    """Make every sublayer say 0."""
    with torch.no_grad():
        for path, parameter in built.named_parameters():
            if ".to_model." in path:
                parameter.zero_()
    return built


NORMS = {"pre": 7, "post": 6, "sandwich": 13, "deepnorm": 6, "rezero": 0, "parallel": 4}
NORMS |= {"no_residual": 7}


@pytest.mark.parametrize(("placement", "count"), NORMS.items())
def test_three_layers_have_so_many_norms(placement: str, count: int) -> None:
    built = encoder(placement)
    assert sum(isinstance(module, Norm) for module in built.modules()) == count
    assert (built.final_norm is None) == (placement in ("post", "deepnorm", "rezero"))


def test_the_norms_of_every_placement_are_counted_here() -> None:
    assert {*NORMS} == {*registry.norm_placements}


def test_a_silent_block_leaves_the_stream_of_pre_as_it_is() -> None:
    built, x = silence(encoder("pre")), inputs(scale=7)
    torch.testing.assert_close(built(x).hidden, nn.functional.layer_norm(x, (8,)))
    built.final_norm = None
    assert torch.equal(built(x).hidden, x)


def test_a_silent_block_normalizes_the_stream_of_post_twice() -> None:
    built, x = silence(encoder("post", n_layers=1)), inputs(scale=7)
    twice = nn.functional.layer_norm(nn.functional.layer_norm(x, (8,)), (8,))
    torch.testing.assert_close(built(x).hidden, twice, rtol=0, atol=1e-6)


def test_the_sublayer_of_pre_sees_the_normalized_stream_and_joins_the_plain_one() -> None:
    x = inputs(scale=7)
    out = Pre(DIMS, lambda: LayerNorm(DIMS))(x, lambda y: 3 * y)
    torch.testing.assert_close(out, x + 3 * nn.functional.layer_norm(x, (8,)))


def test_the_sublayer_of_post_sees_the_plain_stream_and_the_sum_is_normalized() -> None:
    x = inputs(scale=7)
    out = Post(DIMS, lambda: LayerNorm(DIMS))(x, lambda y: y**2)
    torch.testing.assert_close(out, nn.functional.layer_norm(x + x**2, (8,)))


def f(y: Tensor) -> Tensor:
    return 3 * y**2


def g(y: Tensor) -> Tensor:
    return y.sin()


def ln(y: Tensor) -> Tensor:
    return nn.functional.layer_norm(y, (8,))


ALPHA = 6**0.25  # three layers

FORMULAS: dict[type[NormPlacement], Callable[[Tensor], Tensor]] = {
    Pre: lambda x: x + f(ln(x)),
    Post: lambda x: ln(x + f(x)),
    Sandwich: lambda x: x + ln(f(ln(x))),
    DeepNorm: lambda x: ln(ALPHA * x + f(x)),
    ReZero: lambda x: x + 0.7 * f(x),
    NoResidual: lambda x: f(ln(x)),
}


@pytest.mark.parametrize("placement", FORMULAS, ids=lambda placement: placement.name)
def test_a_placement_is_its_formula(placement: Any) -> None:
    join, x = placement(DIMS, lambda: LayerNorm(DIMS)), inputs(scale=7)
    if placement is ReZero:
        nn.init.constant_(join.gate, 0.7)
    torch.testing.assert_close(join(x, f), FORMULAS[placement](x))


def test_parallel_sublayers_read_one_normed_stream() -> None:
    join, x = Parallel(DIMS, lambda: LayerNorm(DIMS)), inputs(scale=7)
    torch.testing.assert_close(join(x, f, g), x + f(ln(x)) + g(ln(x)))
    torch.testing.assert_close(join(x, f), x + f(ln(x)))


def test_a_parallel_block_gives_both_its_sublayers_the_same_input() -> None:
    built, seen = encoder("parallel", n_layers=1), []
    block = built.blocks[0]
    assert len(block.get_submodule("joins")._modules) == 1
    for name in ("attention", "feedforward"):
        block.get_submodule(name).register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    built(inputs())
    assert len(seen) == 2
    assert seen[0] is seen[1]
    torch.testing.assert_close(seen[0], ln(inputs()))


def test_an_untrained_rezero_encoder_is_the_identity_until_its_gates_move() -> None:
    built, x = encoder("rezero"), inputs(scale=7)
    assert torch.equal(built(x).hidden, x)
    optimizer = torch.optim.SGD(built.parameters(), lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        built(x).hidden[..., 0].sum().backward()
        moved = built.get_parameter("blocks.0.attention.to_q.weight").grad
        assert moved is not None
        assert moved.ne(0).any() == (step == 1)
        optimizer.step()
    gates = [one for path, one in built.named_parameters() if path.endswith("gate")]
    assert len(gates) == 6
    assert all(gate.ne(0) for gate in gates)


def test_a_silent_sublayer_ends_a_stream_without_residuals() -> None:
    built = silence(encoder("no_residual", n_layers=1, bias=False))
    assert built(inputs()).hidden.eq(0).all()


@pytest.mark.parametrize(
    ("n_layers", "alpha", "beta"), [(1, 2**0.25, 8**-0.25), (6, 12**0.25, 48**-0.25)]
)
def test_deepnorm_has_the_constants_of_an_encoder(n_layers: int, alpha: float, beta: float) -> None:
    built, plain = encoder("deepnorm", n_layers), encoder("post", n_layers)
    join = built.blocks[0].get_submodule("joins.0")
    assert isinstance(join, DeepNorm)
    assert join.alpha == pytest.approx(alpha)
    scaled = ("feedforward.to_hidden", "feedforward.to_model", "attention.to_v")
    scaled += ("attention.to_model",)
    for path, weight in built.named_parameters():
        if path.endswith("weight") and weight.ndim == 2:
            factor = beta if any(part in path for part in scaled) else 1.0
            torch.testing.assert_close(weight, factor * plain.get_parameter(path), msg=path)


def test_the_weights_of_deepnorm_are_scaled_once() -> None:
    """Its initializer and its placement carry the same factor."""
    both = encoder("deepnorm", initializer="deepnorm").state_dict()
    initializer_alone = encoder("post", initializer="deepnorm").state_dict()
    for path, weight in both.items():
        assert torch.equal(weight, initializer_alone[path]), path


def last_gradient(placement: str, n_layers: int, seed: int) -> float:
    """Size of the loss's gradient in the last matrix, under uniform attention."""
    encoder = build_encoder(
        {
            "vocab_size": 100,
            "n_classes": 100,
            "d_model": 64,
            "n_heads": 1,
            "n_layers": n_layers,
            "position": "none",
            "feedforward": {"name": "relu", "d_ff": 64},
            "norm_placement": placement,
            "bias": False,
        },
        seed=seed,
    )
    for path, one in encoder.named_parameters():
        if "to_q" in path or "to_k" in path:
            nn.init.zeros_(one)
    generator = torch.Generator().manual_seed(seed)
    tokens, targets = torch.randint(100, (2, 4, 16), generator=generator)
    logits = encoder(tokens).logits
    assert logits is not None
    nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    last = encoder.get_parameter(f"blocks.{n_layers - 1}.feedforward.to_model.weight").grad
    assert last is not None
    return last.norm().item()


@pytest.mark.parametrize(
    ("placement", "low", "high"),
    [("post", -0.15, 0.25), ("pre", -0.65, -0.30), ("deepnorm", -0.60, -0.40)],
)
def test_the_last_gradient_grows_with_depth_as_theory_says(
    placement: str, low: float, high: float
) -> None:
    """Xiong et al. 2020, theorem 1: not at all for Post-LN, as 1/√L for Pre-LN; so for DeepNorm."""
    shallow, deep = (
        sum(last_gradient(placement, depth, seed) for seed in range(3)) for depth in (4, 16)
    )
    assert low < math.log(deep / shallow) / math.log(16 / 4) < high


@pytest.mark.parametrize(
    "placement", [name for name in registry.norm_placements if name != "rezero"]
)
def test_what_leaves_the_encoder_is_normalized(placement: str) -> None:
    hidden = encoder(placement)(inputs()).hidden
    torch.testing.assert_close(hidden.mean(-1), torch.zeros(2, 5), rtol=0, atol=1e-5)
    variance = hidden.var(-1, unbiased=False)
    torch.testing.assert_close(variance, torch.ones(2, 5), rtol=0, atol=1e-3)
