"""Attention backends against worked numbers and against loops."""

import math
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import registry
from registry import build_encoder
from tests.messages import Messages
from variants import Dims
from variants.attentions import SDPA, Attention, Explicit
from variants.masks import Causal, Dense, Full, Mask, Padding, Sizes, Window
from variants.positions import ALiBi, NoPosition, Position

SOFTMAX = [name for name, one in registry.attentions.items() if one.softmax]
each_backend = pytest.mark.parametrize("name", SOFTMAX)


def dims(heads: int, d_head: int) -> Dims:
    return Dims(heads * d_head, heads, d_head, 1)


def attend(
    name: str, q: Tensor, k: Tensor, v: Tensor, mask: Mask, position: Position | None = None
) -> Tensor:
    """The backend's output for (batch, heads, tokens, d_head)."""
    batch, heads, queries, d_head = q.shape
    backend: Attention = registry.attentions[name](dims(heads, d_head))
    position = position or NoPosition(dims(heads, d_head))
    at, seen = (torch.arange(length).unsqueeze(0) for length in (queries, k.shape[2]))
    sizes = Sizes(batch, heads, queries, k.shape[2])
    return backend(q, k, v, backend.prepare(mask, position, at, seen, sizes))


def as_heads(rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float32).reshape(1, 1, len(rows), len(rows[0]))


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Given(Position):
    """Scores that come from the test."""

    name = "given"

    def __init__(self, dims: Dims, values: Tensor, content: bool) -> None:
        super().__init__(dims)
        self.values, self.content = values, content

    def bias(self, q_index: Tensor, k_index: Tensor) -> Tensor | None:
        return None if self.content else self.values

    def scores(self, q: Tensor, k: Tensor, q_index: Tensor, k_index: Tensor) -> Tensor | None:
        return self.values if self.content else None


@each_backend
def test_true_means_may_attend(name: str) -> None:
    q, k = as_heads([[1, 0]]), as_heads([[1, 0], [0, 1], [5, 5]])
    v = as_heads([[1, 0], [0, 1], [9, 9]])
    out = attend(name, q, k, v, Dense(torch.tensor([[True, True, False]])))
    torch.testing.assert_close(out[0, 0], torch.tensor([[0.6698, 0.3302]]), rtol=0, atol=1e-4)


@each_backend
def test_scores_are_divided_by_the_root_of_the_head_width(name: str) -> None:
    q = 8 * F.one_hot(torch.tensor([[[0]]]), 8).float()
    k = torch.cat([q / 8, torch.zeros(1, 1, 1, 8)], dim=2)
    v = torch.eye(2, 8).expand(1, 1, 2, 8)
    out = attend(name, q, k, v, Full())[0, 0, 0, :2]
    torch.testing.assert_close(out, torch.tensor([0.9442, 0.0558]), rtol=0, atol=1e-4)


@each_backend
@pytest.mark.parametrize("content", [False, True])
@pytest.mark.parametrize("low", [[-20_000.0, -20_001.0, -19_999.0], [-1e30, -2e30, 1e30]])
def test_scores_however_low_cannot_beat_the_mask(
    name: str, content: bool, low: list[float]
) -> None:
    position = Given(dims(1, 2), torch.tensor([[[low]]]), content)
    v = as_heads([[1, 0], [0, 1], [9, 9]])
    mask = Dense(torch.tensor([[True, False, False]]))
    out = attend(name, as_heads([[0, 0]]), torch.zeros(1, 1, 3, 2), v, mask, position)
    assert out.tolist() == [[[[1, 0]]]]


@each_backend
@pytest.mark.parametrize("content", [False, True])
@pytest.mark.parametrize("mask", [Full(), Causal(), Window(radius=1)], ids=repr)
def test_what_a_position_adds_reaches_the_scores_after_the_scale(
    name: str, content: bool, mask: Mask
) -> None:
    q, k, v = random(3, 2, 2, 4, 8)
    added = random(2, 2, 4, 4, seed=1)
    out = attend(name, q, k, v, mask, Given(dims(2, 8), added, content))
    scores = torch.zeros(2, 2, 4, 4)
    for i in range(4):
        for j in range(4):
            scores[..., i, j] = (q[:, :, i] * k[:, :, j]).sum(-1) / math.sqrt(8) + added[..., i, j]
    allowed = mask.dense(2, 2, 4, 4)
    expected = scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ v
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


@each_backend
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_an_empty_row_is_zero_and_leaves_the_gradients_of_the_others_alone(
    name: str, biased: bool, dtype: torch.dtype
) -> None:
    cells = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 1, 1]]) > 0
    position = ALiBi(dims(1, 4)) if biased else None

    def run(rows: list[int]) -> tuple[Tensor, list[Tensor]]:
        q, k, v = (random(1, 1, 3, 4, seed=seed).to(dtype).requires_grad_() for seed in range(3))
        bias = None if position is None else Given(dims(1, 4), bias_of(position)[:, :, rows], False)
        out = attend(name, q[:, :, rows], k, v, Dense(cells[rows]), bias)
        kept = out[:, :, [0, 2] if len(rows) == 3 else [0, 1]]
        return out, list(torch.autograd.grad(kept.sum(), (q, k, v)))

    out, gradients = run([0, 1, 2])
    _, expected = run([0, 2])
    assert out[0, 0, 1].eq(0).all()
    assert gradients[0][0, 0, 1].eq(0).all()
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 1e-6)
    for one, other in zip(gradients, expected, strict=True):
        assert one.isfinite().all()
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@each_backend
@pytest.mark.parametrize("content", [None, False, True], ids=["plain", "bias", "content"])
@pytest.mark.parametrize("lost", ["queries", "one query", "keys"])
@pytest.mark.parametrize("mask", [Full(), Causal(), Window(radius=1)], ids=repr)
def test_lost_queries_and_keys_are_lost_aloud(
    name: str, content: bool | None, lost: str, mask: Mask
) -> None:
    q, k, v = random(3, 1, 2, 4, 8)
    rows = {"queries": (q, slice(None)), "one query": (q, 2), "keys": (k, slice(None))}
    states, which = rows[lost]
    states[:, :, which] = torch.nan
    position = None if content is None else Given(dims(2, 8), torch.ones(1, 2, 4, 4), content)
    out = attend(name, q, k, v, mask, position)
    expected = torch.zeros(4).bool()
    expected[which if lost == "one query" else slice(None)] = True
    assert torch.equal(out.isnan().any(-1), expected.expand(1, 2, 4))


def bias_of(position: Position) -> Tensor:
    index = torch.arange(3).unsqueeze(0)
    bias = position.bias(index, index)
    assert bias is not None
    return bias


@each_backend
@pytest.mark.parametrize("position", [NoPosition, ALiBi])
def test_nothing_at_all_may_be_attended_to(name: str, position: type[Position]) -> None:
    q, k, v = (random(2, 2, 3, 4, seed=seed).requires_grad_() for seed in range(3))
    out = attend(name, q, k, v, ~Full(), position(dims(2, 4)))
    gradients = torch.autograd.grad(out.sum(), (q, k, v))
    assert out.eq(0).all()
    assert all(gradient.eq(0).all() for gradient in gradients)


@each_backend
def test_lengths_may_differ(name: str) -> None:
    q, k, v = random(1, 1, 2, 4), random(1, 1, 5, 4, seed=1), random(1, 1, 5, 4, seed=2)
    out = attend(name, q, k, v, Causal("last"))
    scores = (q @ k.mT / 2).masked_fill(~Causal("last").dense(1, 1, 2, 5), -torch.inf)
    torch.testing.assert_close(out, scores.softmax(-1) @ v)


def test_weights_of_a_half_precision_model_are_held_in_single_precision() -> None:
    backend, queries, keys = Explicit(dims(1, 64)), 64, 4096
    q = 4 * random(1, 1, queries, 64).bfloat16()  # scores of standard deviation 4
    k = random(1, 1, keys, 64, seed=1).bfloat16()
    at, seen = (torch.arange(length).unsqueeze(0) for length in (queries, keys))
    sizes = Sizes(1, 1, queries, keys)
    prepared = backend.prepare(Full(), NoPosition(dims(1, 64)), at, seen, sizes)
    weights = backend.weights(q, k, prepared)
    assert weights.dtype == torch.float32
    assert (weights.sum(-1) - 1).abs().max() < 1e-5


def calls_of_the_kernel(
    mask: Any, position: str, given: Mask | None = None
) -> list[dict[str, Any]]:
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1}
    encoder = build_encoder({**sizes, "mask": mask, "position": position}, seed=0)
    kernel = F.scaled_dot_product_attention
    with patch.object(F, "scaled_dot_product_attention", side_effect=kernel) as spy:
        encoder(random(2, 5, 8), mask=given)
    return [dict(call.kwargs) for call in spy.call_args_list]


CAUSAL = [
    "causal",
    "causal & causal",
    "full & causal",
    "~~causal",
    "causal | causal & blocks(size=2)",
]


@pytest.mark.parametrize("mask", CAUSAL)
def test_an_exactly_causal_mask_reaches_the_causal_kernel_without_a_tensor(mask: str) -> None:
    (call,) = calls_of_the_kernel(mask, "rope")
    assert call["is_causal"] is True
    assert call["attn_mask"] is None


def test_a_call_that_adds_the_full_mask_stays_exactly_causal() -> None:
    (call,) = calls_of_the_kernel("full", "none", given=Causal())
    assert (call["is_causal"], call["attn_mask"]) == (True, None)
    (call,) = calls_of_the_kernel("causal", "none", given=Full())
    assert (call["is_causal"], call["attn_mask"]) == (True, None)


def test_a_full_mask_needs_no_tensor() -> None:
    (call,) = calls_of_the_kernel("full", "rope")
    assert (call["is_causal"], call["attn_mask"]) == (False, None)


@pytest.mark.parametrize(
    ("mask", "position", "given"),
    [
        ("causal & window(radius=2)", "none", None),
        ("causal", "alibi", None),
        ("causal", "none", Padding(lengths=[3, 5])),
    ],
)
def test_a_mask_and_the_causal_flag_never_meet(
    mask: str, position: str, given: Mask | None
) -> None:
    (call,) = calls_of_the_kernel(mask, position, given)
    assert call["is_causal"] is False
    assert call["attn_mask"] is not None


def test_a_padding_mask_reaches_the_kernel_as_one_row_a_sequence() -> None:
    (call,) = calls_of_the_kernel("full", "rope", given=Padding(lengths=[3, 5]))
    assert call["attn_mask"].shape == (2, 1, 1, 5)
    assert call["attn_mask"].dtype == torch.bool


@pytest.mark.parametrize(
    ("mask", "largest"),
    [
        (Full(), 0),
        (Causal(), 0),
        (Padding(lengths=[30, 32]), 2 * 32),
        (Causal() & Padding(lengths=[30, 32]), 2 * 32 * 32),
    ],
    ids=repr,
)
def test_a_mask_makes_no_larger_tensors_than_the_kernel_needs(mask: Mask, largest: int) -> None:
    class Watch(TorchDispatchMode):
        most = 0

        def __torch_dispatch__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = f(*args, **(kwargs or {}))
            self.most = max(self.most, out.numel() if isinstance(out, Tensor) else 0)
            return out

    backend, index = SDPA(dims(4, 8)), torch.arange(32).unsqueeze(0)
    with Watch() as watch:
        prepared = backend.prepare(mask, NoPosition(dims(4, 8)), index, index, Sizes(2, 4, 32, 32))
    assert watch.most == largest
    assert (prepared.added is None) == (largest == 0)


@each_backend
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_same_keys_are_attended_to_in_every_precision(name: str, dtype: torch.dtype) -> None:
    mask = Causal() & Padding(lengths=[3, 5]) | Window(radius=0)
    q, k = (random(2, 2, 5, 8, seed=seed).to(dtype) for seed in range(2))
    weights = attend(name, q, k, torch.eye(5, 8).to(dtype).expand(2, 2, 5, 8), mask)[..., :5]
    assert torch.equal(weights > 0, mask.dense(2, 2, 5, 5).expand(2, 2, 5, 5))


def test_a_causal_mask_of_ones_own_does_not_pass_for_the_causal_one() -> None:
    class Strict(Causal):
        def allows(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return key < query

    (call,) = calls_of_the_kernel("full", "none", given=Strict())
    assert call["is_causal"] is False


def test_a_backend_that_never_holds_its_weights_says_who_does(messages: Messages) -> None:
    backend = SDPA(dims(1, 4))
    index = torch.arange(3).unsqueeze(0)
    prepared = backend.prepare(Full(), NoPosition(dims(1, 4)), index, index, Sizes(1, 1, 3, 3))
    q = random(1, 1, 3, 4)
    with messages.raises(NotImplementedError):
        backend.with_weights(q, q, q, prepared)


@each_backend
def test_dropout_drops_that_share_of_the_weights_and_scales_the_others(name: str) -> None:
    torch_state = torch.get_rng_state()
    torch.manual_seed(0)
    backend = registry.attentions[name](dims(1, 64))
    index = torch.arange(64).unsqueeze(0)
    prepared = backend.prepare(Full(), NoPosition(dims(1, 64)), index, index, Sizes(1, 1, 64, 64))
    q = torch.zeros(1, 1, 64, 64)
    shares = 64 * backend(q, q, torch.eye(64).expand(1, 1, 64, 64), prepared, 0.25)
    torch.set_rng_state(torch_state)
    assert shares.eq(0).double().mean().item() == pytest.approx(0.25, abs=0.03)
    torch.testing.assert_close(shares[shares != 0], torch.full_like(shares[shares != 0], 4 / 3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_reference_rounds_no_scores(dtype: torch.dtype) -> None:
    """Scores as large as 40 000 do not fit into float16, and lose their last digits in bfloat16."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, 64, 16, generator=generator).to(dtype) for _ in range(3))
    q, k = q * 50, k * 50
    index, sizes = torch.arange(64).reshape(1, 64), Sizes(1, 2, 64, 64)
    dims = Dims(32, 2, 16, 1)
    explicit, position = Explicit(dims), NoPosition(dims)

    found = explicit(q, k, v, explicit.prepare(Full(), position, index, index, sizes))

    expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double())
    torch.testing.assert_close(found.double(), expected, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("attention", ["sdpa", "explicit", "chunked"])
def test_products_that_overflow_half_precision_and_cancel_are_no_lost_queries(
    attention: str, dtype: torch.dtype
) -> None:
    """Two channels of 300 · 300 and 300 · -300: 90,000 is no number of float16."""
    config = {"vocab_size": 16, "d_model": 32, "n_heads": 4, "position": "none", "n_layers": 1}
    encoder = build_encoder({**config, "attention": attention}, seed=0).eval()
    layer: Any = encoder.blocks[0].attention
    with torch.no_grad():
        layer.to_q.bias[:2] = 300
        layer.to_k.bias[0], layer.to_k.bias[1] = 300, -300
        hidden = encoder.to(dtype)(torch.ones(1, 4, dtype=torch.long)).hidden

    assert hidden.isfinite().all()
