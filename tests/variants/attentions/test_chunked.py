"""Attention in blocks: the same numbers as at once, in memory that grows as the length."""

from typing import Any

import pytest
import torch
from einops import rearrange
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from registry import build_encoder
from variants import Dims, Encoder
from variants.attentions import chunked
from variants.masks import Causal, Dense, Documents, Full, Mask, Padding, Prefix, Window
from variants.positions import Position

LENGTH, SMALL = 11, 4
CELLS = torch.rand(2, 2, LENGTH, LENGTH, generator=torch.Generator().manual_seed(0)) < 0.4
KEEP = torch.tensor([[False] * 3 + [True] * 8, [True] * 9 + [False] * 2])
MASKS: dict[str, Mask] = {
    "full": Full(),
    "causal": Causal(),
    "padded on the left": Padding(keep=KEEP),
    "causal and padded": Causal() & Padding(keep=KEEP),
    "window": Window(radius=2),
    "prefix": Prefix(3) | Causal(),
    "documents": Documents(torch.arange(LENGTH).expand(2, LENGTH) // 5),
    "any cells, some rows empty": Dense(CELLS & (torch.arange(LENGTH) % 5 > 0).reshape(-1, 1)),
    "nothing": ~Full(),
}
POSITIONS = ["none", "sinusoidal", "rope", "alibi", "t5_bias"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of four, so that short sequences have several, the last of them shorter."""
    monkeypatch.setattr(chunked, "BLOCK", SMALL)


def build(attention: str, position: str = "none", **changes: Any) -> Encoder:
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 2, "position": position}
    encoder = build_encoder({**sizes, "attention": attention, **changes}, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter += torch.randn(parameter.shape, generator=generator) / 5
    return encoder


def inputs(dtype: torch.dtype = torch.float32) -> Tensor:
    x = torch.randn(2, LENGTH, 8, generator=torch.Generator().manual_seed(2))
    return x.to(dtype).requires_grad_()


def ran(encoder: Encoder, mask: Mask, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """What comes out, and the gradients of a loss in which each number has its own weight."""
    hidden = encoder(x, mask=mask).hidden
    weight = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(3)).to(hidden)
    (hidden * weight).sum().backward()
    assert x.grad is not None
    named = encoder.named_parameters()
    return hidden, {"x": x.grad} | {path: one.grad for path, one in named if one.grad is not None}


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("mask", MASKS)
def test_blocks_give_the_same_outputs_and_gradients(mask: str, position: str) -> None:
    hidden, gradients = ran(build("chunked", position), MASKS[mask], inputs())
    expected, expected_gradients = ran(build("explicit", position), MASKS[mask], inputs())
    torch.testing.assert_close(hidden, expected, rtol=1e-5, atol=1e-5)
    assert gradients.keys() == expected_gradients.keys()
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_blocks_agree_in_every_precision(dtype: torch.dtype) -> None:
    mask, tolerance = MASKS["causal and padded"], 1e-9 if dtype == torch.float64 else 3e-2
    one, other = (
        ran(build(name, "alibi").to(dtype), mask, inputs(dtype)) for name in ("chunked", "explicit")
    )
    assert one[0].dtype == dtype
    together = [torch.cat([grad.flatten() for grad in each[1].values()]) for each in (one, other)]
    for mine, theirs in ((one[0], other[0]), together):
        assert mine.isfinite().all()
        assert (mine - theirs).norm() <= tolerance * theirs.norm() + 1e-6


class Likeness(Position):
    """Scores that depend on content, on distance, and on a table that is learned."""

    name = "likeness"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.table = torch.nn.Parameter(torch.linspace(-1, 1, 2 * LENGTH))

    def scores(self, q: Tensor, k: Tensor, q_index: Tensor, k_index: Tensor) -> Tensor:
        query = rearrange(q_index, "batch query -> batch 1 query 1")
        key = rearrange(k_index, "batch key -> batch 1 1 key")
        return self.table[key - query + LENGTH] * (q @ k.mT)


@pytest.mark.parametrize("mask", ["full", "causal", "any cells, some rows empty"])
def test_scores_that_depend_on_content_are_worked_out_block_by_block(mask: str) -> None:
    results = []
    for name in ("chunked", "explicit", "sdpa"):
        encoder = build(name)
        encoder.positions[0] = Likeness(encoder.dims)
        results.append(ran(encoder, MASKS[mask], inputs()))
    assert results[0][1]["positions.0.table"].abs().sum() > 0
    for hidden, gradients in results[1:]:
        torch.testing.assert_close(results[0][0], hidden, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(results[0][1], gradients, rtol=1e-4, atol=1e-4)


def test_dropout_is_the_same_when_a_block_is_computed_again() -> None:
    """The gradient is that of the weights that were dropped, not of others."""
    encoder = build("chunked", dropout={"weights": 0.5}, n_layers=1).double().train()

    def output(x: Tensor) -> Tensor:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            hidden = encoder(x, mask=Causal()).hidden
        torch.rand(3)
        return hidden.square().sum()

    x = inputs(torch.float64)
    (gradient,) = torch.autograd.grad(output(x), x)
    direction = torch.randn(x.shape, generator=torch.Generator().manual_seed(5)).double()
    with torch.no_grad():
        slope = (output(x + 1e-6 * direction) - output(x - 1e-6 * direction)) / 2e-6
    torch.testing.assert_close((gradient * direction).sum(), slope, rtol=1e-6, atol=1e-6)


class Largest(TorchDispatchMode):
    """The size of the largest tensor that anything made."""

    most = 0

    def __torch_dispatch__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = f(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else [out]:
            self.most = max(self.most, one.numel() if isinstance(one, Tensor) else 0)
        return out


@pytest.mark.parametrize(
    "mask", [Full(), Causal(), Window(radius=3), Causal() & Prefix(2)], ids=repr
)
@pytest.mark.parametrize("position", ["rope", "alibi", "t5_bias"])
def test_nothing_is_larger_than_a_block_of_scores(position: str, mask: Mask) -> None:
    length, encoder = 64, build("chunked", position, feedforward="none")
    with Largest() as seen:
        encoder(torch.randn(1, length, 8), mask=mask).hidden.sum().backward()
    assert seen.most <= 2 * SMALL * length


def test_what_is_kept_for_the_backward_pass_grows_as_the_length() -> None:
    def kept(length: int) -> int:
        sizes: dict[int, int] = {}

        def note(tensor: Tensor) -> Tensor:
            sizes[tensor.untyped_storage().data_ptr()] = tensor.numel()
            return tensor

        encoder, x = build("chunked", "alibi"), torch.randn(1, length, 8)
        with torch.autograd.graph.saved_tensors_hooks(note, lambda one: one):
            hidden = encoder(x, mask=Window(radius=3)).hidden
        assert hidden.requires_grad
        return sum(sizes.values())

    assert kept(256) < 2.2 * kept(128)


def test_a_causal_block_leaves_out_the_keys_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[int] = []
    whole = chunked.softmax_weights

    def watched(q: Tensor, k: Tensor, *rest: Any) -> Tensor:
        keys.append(k.shape[2])
        return whole(q, k, *rest)

    monkeypatch.setattr(chunked, "softmax_weights", watched)
    with torch.no_grad():
        build("chunked", n_layers=1)(inputs(), mask=Causal())
    assert keys == [4, 8, 11]
