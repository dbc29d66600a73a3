"""Norm placements: where the norms are."""

import pytest
import torch
from torch import nn

import registry
from registry import build_encoder
from variants import Dims, Encoder
from variants.norm_placements import Post, Pre
from variants.norms import LayerNorm, Norm

DIMS = Dims(8, 2, 4, 3)


def encoder(placement: str, n_layers: int = 3) -> Encoder:
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": n_layers, "position": "none"}
    return build_encoder({**sizes, "norm_placement": placement}, seed=0)


def inputs(scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))


def silence(built: Encoder) -> Encoder:
    """Make every sublayer say 0."""
    with torch.no_grad():
        for path, parameter in built.named_parameters():
            if ".to_model." in path:
                parameter.zero_()
    return built


@pytest.mark.parametrize(("placement", "count"), [("pre", 7), ("post", 6)])
def test_three_layers_have_so_many_norms(placement: str, count: int) -> None:
    built = encoder(placement)
    assert sum(isinstance(module, Norm) for module in built.modules()) == count
    assert (built.final_norm is None) == (placement == "post")


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


@pytest.mark.parametrize("placement", list(registry.norm_placements))
def test_what_leaves_the_encoder_is_normalized(placement: str) -> None:
    hidden = encoder(placement)(inputs()).hidden
    torch.testing.assert_close(hidden.mean(-1), torch.zeros(2, 5), rtol=0, atol=1e-5)
    variance = hidden.var(-1, unbiased=False)
    torch.testing.assert_close(variance, torch.ones(2, 5), rtol=0, atol=1e-3)
