"""Multi-head attention: which head owns which channels."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import registry
from registry import build_encoder
from tests.messages import Messages
from variants import Dims, MultiHeadAttention
from variants.attentions import SDPA, Explicit
from variants.attentions.attention import Heads
from variants.masks import Full, Sizes
from variants.positions import NoPosition

DIMS = Dims(d_model=8, n_heads=2, d_head=4, n_layers=1)
SOFTMAX = [name for name, one in registry.attentions.items() if one.softmax]
FOUR = Dims(d_model=8, n_heads=4, d_head=2, n_layers=1)


def attention() -> MultiHeadAttention:
    """Uniform attention over values that are the input itself."""
    built = MultiHeadAttention(DIMS)
    for linear in (built.to_q, built.to_k, built.to_v, built.to_model):
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
    for linear in (built.to_v, built.to_model):
        nn.init.eye_(linear.weight)
    return built


def run(built: MultiHeadAttention, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    backend, position = Explicit(DIMS), NoPosition(DIMS)
    index = torch.arange(x.shape[1]).unsqueeze(0)
    prepared = backend.prepare(Full(), position, index, index, Sizes(1, 2, x.shape[1], x.shape[1]))
    seen: list[torch.Tensor] = []
    out = built(x, position, index, backend, prepared, seen)
    return out, seen[0]


def test_splitting_and_merging_heads_is_the_identity() -> None:
    x = torch.arange(8.0).expand(1, 3, 8)
    out, _ = run(attention(), x)
    torch.testing.assert_close(out, x)


def test_head_h_owns_the_channels_from_h_times_d_head() -> None:
    built, x = attention(), torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for linear in (built.to_q, built.to_k):
            linear.weight[4:].copy_(torch.eye(8)[4:])
    _, weights = run(built, x)
    torch.testing.assert_close(weights[0, 0], torch.full((3, 3), 1 / 3))
    second = x[0, :, 4:]
    torch.testing.assert_close(weights[0, 1], (second @ second.T / 2).softmax(-1))


def built(heads: Heads) -> MultiHeadAttention:
    """An attention of four heads over eight channels with random weights."""
    made = MultiHeadAttention(FOUR, heads=heads)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(1 + torch.randn(parameter.shape, generator=generator))
    return made


def by_hand(made: MultiHeadAttention, x: Tensor, q_and_k: Any, scale: Any) -> Tensor:
    """What torch's kernel makes of the same projections."""
    q, k, v = (
        to(x).unflatten(-1, (-1, 2)).transpose(1, 2) for to in (made.to_q, made.to_k, made.to_v)
    )
    q, k = q_and_k(q, k)
    mixed = F.scaled_dot_product_attention(q * scale, k, v, scale=1.0, enable_gqa=True)
    return made.to_model(mixed.transpose(1, 2).flatten(2))


def inputs() -> Tensor:
    return torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(2))


def ran(made: MultiHeadAttention, x: Tensor) -> Tensor:
    backend, position, index = SDPA(FOUR), NoPosition(FOUR), torch.arange(5).unsqueeze(0)
    prepared = backend.prepare(Full(), position, index, index, Sizes(2, 4, 5, 5))
    return made(x, position, index, backend, prepared)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_neighbouring_heads_share_keys_and_values_as_in_torch(n_kv_heads: int) -> None:
    made, x = built(Heads(n_kv_heads)), inputs()
    assert made.to_k.weight.shape == made.to_v.weight.shape == (2 * n_kv_heads, 8)
    expected = by_hand(made, x, lambda q, k: (q, k), 2**-0.5)
    torch.testing.assert_close(ran(made, x), expected)


@pytest.mark.parametrize(
    ("scale", "factor"), [("1/sqrt(d_head)", 2**-0.5), ("1/d_head", 0.5), ("none", 1.0)]
)
def test_scores_are_multiplied_by_the_scale_that_is_named(scale: Any, factor: float) -> None:
    made, x = built(Heads(4, scale)), inputs()
    torch.testing.assert_close(ran(made, x), by_hand(made, x, lambda q, k: (q, k), factor))


def test_a_learned_scale_starts_at_the_usual_one_and_is_a_number_a_head() -> None:
    fresh = MultiHeadAttention(FOUR, heads=Heads(4, "learned"))
    plain = MultiHeadAttention(FOUR)
    plain.load_state_dict({k: v for k, v in fresh.state_dict().items() if k != "sharpness"})
    torch.testing.assert_close(ran(fresh, inputs()), ran(plain, inputs()))
    made, x = built(Heads(4, "learned")), inputs()
    assert made.sharpness is not None
    factor = made.sharpness.reshape(4, 1, 1) * 2**-0.5
    torch.testing.assert_close(ran(made, x), by_hand(made, x, lambda q, k: (q, k), factor))


def test_query_key_norm_leaves_the_direction_of_each_head_alone() -> None:
    made, x = built(Heads(4, qk_norm=True)), inputs()
    gains = {name: parameter for name, parameter in made.named_parameters() if "norm" in name}
    assert {name: parameter.shape for name, parameter in gains.items()} == {
        "norm_q.weight": (2,),
        "norm_k.weight": (2,),
    }

    def normed(one: Tensor, gain: Tensor) -> Tensor:
        return one / (one.square().mean(-1, keepdim=True) + 1e-6).sqrt() * gain

    expected = by_hand(
        made,
        x,
        lambda q, k: (normed(q, gains["norm_q.weight"]), normed(k, gains["norm_k.weight"])),
        2**-0.5,
    )
    torch.testing.assert_close(ran(made, x), expected, rtol=1e-5, atol=1e-5)


def test_query_key_norm_bounds_the_scores_however_large_the_states() -> None:
    made = MultiHeadAttention(FOUR, heads=Heads(4, qk_norm=True))
    torch.testing.assert_close(
        ran(made, 1e4 * inputs()) / 1e4, ran(made, 1e6 * inputs()) / 1e6, rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("large", [1e30, -3e38])
def test_states_whose_squares_overflow_are_lost_aloud_by_query_key_norm(large: float) -> None:
    normed = Heads(4, qk_norm=True).norm(2)(torch.tensor([[large, 1.0], [1e18, -1e18], [0, 0]]))
    assert normed[0].isnan().all()
    torch.testing.assert_close(normed[1:], torch.tensor([[1.0, -1], [0, 0]]))


@pytest.mark.parametrize("backend", SOFTMAX)
def test_what_query_key_norm_loses_reaches_the_output_of_every_backend(backend: str) -> None:
    options = {"name": backend, "qk_norm": True}
    sizes = {"d_model": 8, "n_heads": 4, "n_layers": 1, "position": "none"}
    encoder: Any = build_encoder({**sizes, "attention": options}, seed=0).eval()
    with torch.no_grad():
        for maps in (encoder.blocks[0].attention.to_q, encoder.blocks[0].attention.to_k):
            maps.weight.mul_(1e30)
    hidden = encoder(inputs()).hidden
    assert hidden.isnan().any(-1).all()


@pytest.mark.parametrize("n_kv_heads", [0, 3, 8])
def test_heads_share_keys_in_groups_of_one_size(messages: Messages, n_kv_heads: int) -> None:
    with messages.raises(ValueError):
        SDPA(FOUR, n_kv_heads=n_kv_heads)


OPTIONS: list[dict[str, Any]] = [
    {"scale": "none"},
    {"scale": "1/d_head"},
    {"scale": "learned"},
    {"n_kv_heads": 1},
    {"qk_norm": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("position", ["rope", "alibi"])
def test_options_mean_the_same_in_every_backend(options: dict[str, Any], position: str) -> None:
    sizes = {"d_model": 8, "n_heads": 4, "n_layers": 2, "position": position, "mask": "causal"}
    hidden = []
    for name in sorted(registry.attentions):
        if registry.attentions[name].softmax:
            attention = {"name": name, **options}
            with torch.no_grad():
                hidden.append(build_encoder({**sizes, "attention": attention}, seed=0)(inputs()))
    for other in hidden[1:]:
        torch.testing.assert_close(other.hidden, hidden[0].hidden, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "options", [one for one in OPTIONS if one != {"scale": "learned"}], ids=str
)
def test_every_option_has_an_effect(options: dict[str, Any]) -> None:
    sizes = {"d_model": 8, "n_heads": 4, "n_layers": 1}
    plain = build_encoder(sizes, seed=0)
    made = build_encoder({**sizes, "attention": {"name": "sdpa", **options}}, seed=0)
    assert (made(inputs()).hidden - plain(inputs()).hidden).abs().max() > 1e-3
