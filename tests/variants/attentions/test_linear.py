"""Linear attention against the sum that it is, and what it cannot do."""

from typing import Any

import pytest
import torch
from torch import Tensor

from registry import ConfigError, EncoderConfig, build_encoder
from tests.messages import Messages
from variants import Dims, Encoder
from variants.attentions.linear import LinearAttention
from variants.masks import Causal, Documents, Full, Mask, Padding, Sizes, Window
from variants.positions import NoPosition

DIMS = Dims(12, 2, 6, 1)
KEEP = torch.tensor([[False, False, True, True, True], [True, True, True, False, False]])
MASKS: dict[str, Mask] = {
    "full": Full(),
    "causal": Causal(),
    "padded": Padding(keep=KEEP),
    "causal and padded": Causal() & Padding(keep=KEEP),
    "padded twice": Padding(keep=KEEP) & Causal() & Padding(lengths=[4, 5]),
    "nothing": Padding(lengths=[0, 0]),
}
each_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def prepared(mask: Mask, batch: int, length: int) -> Any:
    index = torch.arange(length).unsqueeze(0)
    sizes = Sizes(batch, 2, length, length)
    return LinearAttention(DIMS).prepare(mask, NoPosition(DIMS), index, index, sizes)


def by_hand(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor) -> Tensor:
    """The sum over the keys, one pair of a query and a key after the other."""

    def phi(u: Tensor) -> Tensor:
        return torch.where(u > 0, u + 1, u.exp())

    out = torch.zeros_like(v)
    for b, h, i in torch.cartesian_prod(*(torch.arange(n) for n in q.shape[:3])).tolist():
        keys = [j for j in range(k.shape[2]) if allowed[b, h, i, j]]
        shares = [(phi(q[b, h, i]) * phi(k[b, h, j])).sum() for j in keys]
        for share, j in zip(shares, keys, strict=True):
            out[b, h, i] += share / sum(shares) * v[b, h, j]
    return out


@each_mask
def test_the_output_is_the_weighted_sum_over_the_keys(mask: Mask) -> None:
    q, k, v = (random(2, 2, 5, 6, seed=seed) for seed in range(3))
    allowed = mask.dense(2, 2, 5, 5).expand(2, 2, 5, 5)
    out = LinearAttention(DIMS)(q, k, v, prepared(mask, 2, 5))
    torch.testing.assert_close(out, by_hand(q, k, v, allowed), rtol=1e-9, atol=1e-9)


@each_mask
def test_its_weights_are_shares_of_the_allowed_keys(mask: Mask) -> None:
    backend, given = LinearAttention(DIMS), prepared(mask, 2, 5)
    q, k, v = (random(2, 2, 5, 6, seed=seed) for seed in range(3))
    mixed, weights = backend.with_weights(q, k, v, given)
    allowed = mask.dense(2, 2, 5, 5).expand(2, 2, 5, 5)
    assert torch.equal(weights > 0, allowed)
    torch.testing.assert_close(weights.sum(-1), allowed.any(-1).double())
    torch.testing.assert_close(mixed, backend(q, k, v, given))


@pytest.mark.parametrize("length", [1, 63, 64, 65, 150])
def test_running_sums_are_those_of_all_weights_forward_and_backward(length: int) -> None:
    backend, mask = LinearAttention(DIMS), Causal() & Padding(lengths=[length, length // 2])
    results = []
    for run in (backend, lambda *given: backend.with_weights(*given)[0]):
        q, k, v = (random(2, 2, length, 6, seed=seed).requires_grad_() for seed in range(3))
        out = run(q, k, v, prepared(mask, 2, length))
        gradients = torch.autograd.grad((out * random(*out.shape, seed=4)).sum(), (q, k, v))
        results.append((out, *gradients))
    torch.testing.assert_close(results[0], results[1], rtol=1e-8, atol=1e-8)


def test_queries_that_may_attend_to_nothing_leave_every_gradient_finite() -> None:
    q, k, v = (random(2, 2, 5, 6, seed=seed).requires_grad_() for seed in range(3))
    out = LinearAttention(DIMS)(q, k, v, prepared(MASKS["causal and padded"], 2, 5))
    assert out[0, :, :2].eq(0).all()
    for gradient in torch.autograd.grad(out.sum(), (q, k, v)):
        assert gradient.isfinite().all()


def build(**changes: Any) -> Encoder:
    sizes = {"vocab_size": 9, "d_model": 8, "n_heads": 2, "n_layers": 2, "pad_id": 0}
    return build_encoder({**sizes, "attention": "linear", **changes}, seed=0)


def tokens(length: int = 5) -> Tensor:
    return torch.randint(1, 9, (2, length), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("position", ["none", "sinusoidal", "learned"])
def test_asking_for_weights_changes_nothing_else(position: str, mask: str) -> None:
    encoder = build(position=position, mask=mask)
    plain, asked = encoder(tokens()), encoder(tokens(), need_weights=True)
    torch.testing.assert_close(plain.hidden, asked.hidden, rtol=1e-5, atol=1e-5)
    softmax = build(position=position, mask=mask, attention="explicit")(tokens()).hidden
    assert (plain.hidden - softmax).abs().max() > 1e-3


def test_later_tokens_change_nothing_before_them() -> None:
    encoder, changed = build(mask="causal"), tokens(70)
    changed[:, 66:] = 9 - changed[:, 66:]
    first, second = encoder(tokens(70)).hidden, encoder(changed).hidden
    assert torch.equal(first[:, :66], second[:, :66])
    assert (first[:, 66:] - second[:, 66:]).abs().max() > 1e-3


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize(("left", "right"), [(0, 3), (2, 0)])
def test_a_sample_alone_equals_itself_in_a_padded_batch(mask: str, left: int, right: int) -> None:
    encoder, row = build(mask=mask), torch.nn.functional.pad(tokens(), (left, right))
    real = encoder(row).hidden[:, left : left + 5]
    torch.testing.assert_close(real, encoder(tokens()).hidden, rtol=1e-5, atol=1e-5)


def test_dropout_of_weights_drops_single_terms() -> None:
    q, v = torch.zeros(1, 2, 64, 64), torch.eye(64).expand(1, 2, 64, 64)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        shares = 64 * LinearAttention(Dims(128, 2, 64, 1))(
            q, q, v, prepared(Full(), 1, 64), dropout=0.25
        )
    assert shares.eq(0).double().mean().item() == pytest.approx(0.25, abs=0.03)
    torch.testing.assert_close(shares[shares != 0], torch.full_like(shares[shares != 0], 4 / 3))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sums_of_half_precision_states_are_held_in_single(dtype: torch.dtype) -> None:
    """Three thousand ones have no sum in bfloat16, whose next number after 256 is 258."""
    q, v = torch.zeros(1, 2, 3000, 6, dtype=dtype), torch.ones(1, 2, 3000, 6, dtype=dtype)
    for mask in (Full(), Causal()):
        out = LinearAttention(DIMS)(q, q, v, prepared(mask, 1, 3000))
        assert out.dtype == dtype
        assert out.eq(1).all()


@pytest.mark.parametrize(
    "mask", [Window(radius=1), ~Causal(), Causal() | Padding(lengths=[2, 2])], ids=repr
)
def test_a_mask_that_it_cannot_honour_is_refused(messages: Messages, mask: Mask) -> None:
    with messages.raises(ValueError):
        build()(tokens(), mask=mask)


def test_a_packed_batch_is_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        build()(tokens(), mask=Documents(torch.zeros(2, 5).long()))


def test_a_causal_mask_needs_as_many_keys_as_queries(messages: Messages) -> None:
    index, seen = torch.arange(2).unsqueeze(0), torch.arange(5).unsqueeze(0)
    with messages.raises(ValueError):
        LinearAttention(DIMS).prepare(
            Causal("last"), NoPosition(DIMS), index, seen, Sizes(1, 2, 2, 5)
        )


@pytest.mark.parametrize("position", ["rope", "alibi", "t5_bias"])
def test_a_position_that_works_on_scores_is_refused_in_the_config(
    messages: Messages, position: str
) -> None:
    with messages.raises(ConfigError) as caught:
        EncoderConfig(attention="linear", position=position)
    assert [problem.key for problem in caught.value.problems] == ["attention"]


def test_a_mask_that_it_cannot_honour_is_refused_in_the_config(messages: Messages) -> None:
    with messages.raises(ConfigError):
        EncoderConfig(attention="linear", mask="causal & window(radius=2)")
    assert EncoderConfig(attention="linear", mask="causal & full").attention.name == "linear"


@pytest.mark.parametrize("option", ["scale", "qk_norm", "length_base"])
def test_options_of_scores_are_not_its_own(option: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown key '{option}'"):
        EncoderConfig(attention={"name": "linear", option: None})
