"""The same mask means the same attention here and in other libraries.

Where a library has no answer for a query that may attend to nothing (NaN, in
`nn.MultiheadAttention` and in Hugging Face's eager attention), such queries are left out of the
comparison with it; everyone else must answer 0.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import registry
from tests.messages import Messages
from variants import Dims
from variants.masks import (
    Blocks,
    Causal,
    Dense,
    Dilated,
    Documents,
    Full,
    GlobalTokens,
    Mask,
    Padding,
    Prefix,
    RandomBlocks,
    Sizes,
    Window,
)
from variants.masks.testing import assert_no_leak, assert_padding_invariant
from variants.positions import NoPosition

BATCH, WIDTH = 2, 8
Attend = Callable[[Tensor, Tensor, Mask, int], Tensor]


def masks(heads: int, n: int) -> dict[str, Mask]:
    left = Padding(keep=torch.stack([torch.arange(n) >= n // 2, torch.ones(n) > 0]))
    cells = torch.rand(BATCH, heads, n, n, generator=torch.Generator().manual_seed(n)) < 0.6
    return {
        "full": Full(),
        "causal": Causal(),
        "window": Window(radius=1),
        "right padding": Padding(lengths=[n // 2, n]),
        "left padding": left,
        "an empty sequence": Padding(lengths=[0, n]),
        "causal and left padding": left & Causal(),
        "causal and right padding": Causal() & Padding(lengths=[n // 2, n]),
        "prefix of padded text": (Causal() | Prefix(2)) & left,
        "documents": Documents((torch.arange(n) // 2).expand(BATCH, n)),
        "blocks, dilated": (Blocks(2) | Dilated(3)) & ~Window(radius=0),
        "big bird, padded": left & (Blocks(2) | GlobalTokens(1) | RandomBlocks(1, count=1)),
        "one a head": Dense(cells[:1]),
        "one a row": Dense(cells[:, 0]),
        "one a row and head": Dense(cells),
        "a rule": Mask.from_rule(lambda b, h, q, k: (h % 2 == 1) | (k <= q + b)),
    }


def projected(x: Tensor, weights: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = (rearrange(x @ w.mT, "b t (h d) -> b h t d", h=heads) for w in weights)
    return q, k, v


def joined(mixed: Tensor) -> Tensor:
    return rearrange(mixed, "b h t d -> b t (h d)")


def loops(x: Tensor, weights: Tensor, mask: Mask, heads: int) -> Tensor:
    q, k, v = projected(x, weights, heads)
    n, d_head = x.shape[1], WIDTH // heads
    cells = mask.dense(BATCH, heads, n, n).expand(BATCH, heads, n, n)
    mixed = torch.zeros_like(q)
    for b, h, i in torch.cartesian_prod(*map(torch.arange, (BATCH, heads, n))).tolist():
        seen = [j for j in range(n) if cells[b, h, i, j]]
        if seen:
            scores = k[b, h, seen] @ q[b, h, i] / d_head**0.5
            mixed[b, h, i] = scores.softmax(0) @ v[b, h, seen]
    return joined(mixed)


def ours(backend: str) -> Attend:
    def attend(x: Tensor, weights: Tensor, mask: Mask, heads: int) -> Tensor:
        dims, n = Dims(WIDTH, heads, WIDTH // heads, 1), x.shape[1]
        attention = registry.attentions[backend](dims)
        index = torch.arange(n).unsqueeze(0)
        prepared = attention.prepare(
            mask, NoPosition(dims), index, index, Sizes(BATCH, heads, n, n)
        )
        return joined(attention(*projected(x, weights, heads), prepared))

    return attend


def fused(x: Tensor, weights: Tensor, mask: Mask, heads: int) -> Tensor:
    n = x.shape[1]
    allowed = mask.dense(BATCH, heads, n, n)
    q, k, v = projected(x, weights, heads)
    return joined(F.scaled_dot_product_attention(q, k, v, attn_mask=allowed))


def fused_and_added(x: Tensor, weights: Tensor, mask: Mask, heads: int) -> Tensor:
    n = x.shape[1]
    added = mask.to_additive(x.dtype, BATCH, heads, n, n)
    q, k, v = projected(x, weights, heads)
    return joined(F.scaled_dot_product_attention(q, k, v, attn_mask=added))


def flex(run: Callable[..., Any]) -> Attend:
    def attend(x: Tensor, weights: Tensor, mask: Mask, heads: int) -> Tensor:
        n = x.shape[1]
        blocks = create_block_mask(mask.mask_mod(n, n), BATCH, heads, n, n, device="cpu")
        with torch.no_grad():
            return joined(run(*projected(x, weights, heads), block_mask=blocks))

    return attend


def of_torch(x: Tensor, weights: Tensor, mask: Mask, heads: int) -> Tensor:
    n = x.shape[1]
    attention = nn.MultiheadAttention(WIDTH, heads, bias=False, batch_first=True)
    with torch.no_grad():
        attention.in_proj_weight.copy_(rearrange(weights, "qkv to width -> (qkv to) width"))
        attention.out_proj.weight.copy_(torch.eye(WIDTH))
    return attention(x, x, x, attn_mask=mask.to_ignore(BATCH, heads, n, n))[0]


def bert(implementation: str, heads: int) -> Any:
    transformers = pytest.importorskip("transformers", reason="Hugging Face is not installed")
    config = transformers.BertConfig(
        hidden_size=WIDTH,
        num_attention_heads=heads,
        num_hidden_layers=2,
        intermediate_size=16,
        vocab_size=10,
        attn_implementation=implementation,
    )
    return transformers.BertModel(config, add_pooling_layer=False).eval()


def of_bert(implementation: str) -> Attend:
    def attend(x: Tensor, weights: Tensor, mask: Mask, heads: int) -> Tensor:
        layer, n = bert(implementation, heads).encoder.layer[0], x.shape[1]
        attention, seen = layer.attention.self, []
        for linear, w in zip(
            (attention.query, attention.key, attention.value), weights, strict=True
        ):
            nn.init.zeros_(linear.bias)
            linear.weight.data.copy_(w)
        attention.register_forward_hook(lambda _, __, out: seen.append(out[0]))
        sizes = (BATCH, heads, n, n)
        given = mask.dense(*sizes).expand(sizes)
        if implementation == "eager":
            given = mask.to_additive(x.dtype, *sizes)
        layer(x, attention_mask=given)
        return seen[0]

    return attend


OTHERS: dict[str, Attend] = {
    **{f"ours, {name}": ours(name) for name, one in registry.attentions.items() if one.softmax},
    "scaled_dot_product_attention": fused,
    "scaled_dot_product_attention, added": fused_and_added,
    "FlexAttention": flex(flex_attention),
    "nn.MultiheadAttention": of_torch,
    "Hugging Face BERT, sdpa": of_bert("sdpa"),
    "Hugging Face BERT, eager": of_bert("eager"),
}
WITHOUT_AN_ANSWER = {"nn.MultiheadAttention", "Hugging Face BERT, eager"}
"""Who says NaN for a query that may attend to nothing."""


GRID = [(n, heads) for n in (4, 7) for heads in (1, 2, 4)]


def distances(name: str, n: int, heads: int) -> dict[str, float]:
    """How far somebody's attention is from the loops, for each mask."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(BATCH, n, WIDTH, generator=generator)
    weights = torch.randn(3, WIDTH, WIDTH, generator=generator) / 2
    found = {}
    for what, mask in masks(heads, n).items():
        change = OTHERS[name](x, weights, mask, heads) - loops(x, weights, mask, heads)
        allowed = mask.dense(BATCH, heads, n, n).expand(BATCH, heads, n, n)
        answered = allowed.any(-1).all(1) | (name not in WITHOUT_AN_ANSWER)
        found[what] = change[answered].abs().max().item()
    return found


FLEX = {"traced": [(7, 2)], "traced more": [(4, 2), (7, 1), (7, 4)], "compiled": [(7, 2)]}
"""FlexAttention traces each mask anew, and compiles it where it is asked to: fewer points."""


def distances_of_flex(how: str) -> list[dict[str, float]]:
    """In a process of its own: the checks of shapes that tests add cannot be compiled."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, how],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize(("n", "heads"), GRID)
@pytest.mark.parametrize("name", [name for name in OTHERS if name != "FlexAttention"])
def test_the_same_mask_is_the_same_attention(name: str, n: int, heads: int) -> None:
    found = distances(name, n, heads)
    assert set(found) == set(masks(heads, n))
    assert not {what: change for what, change in found.items() if not change < 1e-5}


@pytest.mark.slow
@pytest.mark.parametrize("how", FLEX)
def test_the_same_mask_is_the_same_attention_in_flex_attention(how: str) -> None:
    for found, (n, heads) in zip(distances_of_flex(how), FLEX[how], strict=True):
        assert set(found) == set(masks(heads, n))
        assert not {what: change for what, change in found.items() if not change < 1e-5}


@pytest.mark.parametrize("name", sorted(WITHOUT_AN_ANSWER))
def test_who_has_no_answer_for_an_empty_row_still_has_none(name: str) -> None:
    x, weights = torch.ones(BATCH, 3, WIDTH), torch.ones(3, WIDTH, WIDTH)
    out = OTHERS[name](x, weights, Padding(lengths=[0, 3]), 2)
    assert out[0].isnan().all()
    assert out[1].isfinite().all()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
def test_torch_answers_an_empty_row_with_nan_in_inference_and_with_weights(
    training: bool, gradients: bool
) -> None:
    attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True).train(training)
    x, mask = torch.ones(BATCH, 3, WIDTH), Padding(lengths=[0, 3])
    padding = ~mask.dense(BATCH, 1, 1, 3)[:, 0, 0]
    for given in ({"attn_mask": mask.to_ignore(BATCH, 2, 3, 3)}, {"key_padding_mask": padding}):
        with torch.set_grad_enabled(gradients):
            bare = attention(x, x, x, need_weights=False, **given)[0]
            weighed = attention(x, x, x, need_weights=True, **given)[0]
        assert weighed[0].isnan().all()
        assert bare[0].isnan().all() == (not training and not gradients)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_a_bert_model_takes_padding_as_it_takes_a_tokenizers_mask(implementation: str) -> None:
    torch.manual_seed(0)
    model = bert(implementation, 2)
    tokens = torch.tensor([[3, 4, 5, 0, 0], [3, 4, 5, 6, 7]])
    mask = Padding.from_tokens(tokens, pad_id=0)
    short = model(tokens, attention_mask=mask.to_keep(2, 2, 5, 5)).last_hidden_state
    assert torch.equal(short, model(tokens, attention_mask=(tokens != 0).long()).last_hidden_state)
    alone = model(tokens[:1, :3]).last_hidden_state
    torch.testing.assert_close(short[:1, :3], alone, rtol=1e-5, atol=1e-5)


def test_a_bert_model_takes_any_other_mask_in_four_axes() -> None:
    torch.manual_seed(0)
    tokens = torch.tensor([[3, 4, 5, 6, 7]] * 2)
    mask, sizes = Causal() & Padding(lengths=[3, 5]), (2, 2, 5, 5)
    fused, eager = bert("sdpa", 2), bert("eager", 2)
    eager.load_state_dict(fused.state_dict())
    one = fused(tokens, attention_mask=mask.to_keep(*sizes)).last_hidden_state
    other = eager(tokens, attention_mask=mask.to_additive(torch.float32, *sizes)).last_hidden_state
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    full = fused(tokens).last_hidden_state
    assert (one - full).abs().max() > 1e-3


@pytest.mark.parametrize("what", ["causal", "left padding", "one a head", "window"])
def test_the_asserts_for_tests_work_on_a_layer_of_bert(messages: Messages, what: str) -> None:
    mask, layer = masks(2, 6)[what], bert("sdpa", 2).encoder.layer[0].double()
    allowed = mask.dense(BATCH, 2, 6, 6).expand(BATCH, 2, 6, 6)
    assert_no_leak(
        lambda x: layer(x, attention_mask=allowed), mask, batch=BATCH, length=6, residual=True
    )
    with messages.raises(AssertionError):
        assert_no_leak(layer.forward, mask, batch=BATCH, length=6, residual=True)


def test_padding_does_not_move_a_layer_of_bert() -> None:
    layer = bert("eager", 2).encoder.layer[0].double()

    def encode(x: Tensor, padding: Mask) -> Tensor:
        batch, n, _ = x.shape
        return layer(x, attention_mask=padding.to_additive(x.dtype, batch, 2, n, n))

    assert_padding_invariant(encode)


if __name__ == "__main__":
    how = sys.argv[1]
    if how == "compiled":
        OTHERS["FlexAttention"] = flex(torch.compile(flex_attention))
    json.dump([distances("FlexAttention", *at) for at in FLEX[how]], sys.stdout)
