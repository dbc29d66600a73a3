"""Our encoder and torch's own, with the same weights."""

from typing import Any

import pytest
import torch
from einops import rearrange
from torch import Tensor, nn

from registry import build_encoder
from variants import Encoder
from variants.masks import Causal, Padding

D_MODEL, HEADS, D_FF, LAYERS = 32, 4, 64, 3
LENGTHS = [7, 4, 1]

cases = [
    pytest.mark.parametrize("placement", ["pre", "post"]),
    pytest.mark.parametrize("feedforward", ["relu", "gelu"]),
    pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"]),
    pytest.mark.parametrize("attention", ["explicit", "sdpa"]),
]


def torch_encoder(placement: str, feedforward: str) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(
        D_MODEL, HEADS, D_FF, 0.0, feedforward, batch_first=True, norm_first=placement == "pre"
    )
    norm = nn.LayerNorm(D_MODEL) if placement == "pre" else None
    theirs = nn.TransformerEncoder(layer, LAYERS, norm, enable_nested_tensor=False)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for path, parameter in theirs.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator) * 0.15
            parameter.copy_(noise + ("norm" in path and "weight" in path))
    return theirs


def our_encoder(placement: str, feedforward: str, attention: str) -> Encoder:
    return build_encoder(
        {
            "d_model": D_MODEL,
            "n_heads": HEADS,
            "n_layers": LAYERS,
            "position": "none",
            "feedforward": {"name": feedforward, "d_ff": D_FF},
            "norm_placement": placement,
            "attention": attention,
        },
        seed=0,
    )


def pairs(ours: Any, theirs: Any, placement: str) -> list[tuple[list[Tensor], Tensor]]:
    """For each of torch's parameters, ours, which may be several that it holds stacked."""
    norm = "before" if placement == "pre" else "after"
    found = []
    for block, layer in zip(ours.blocks, theirs.layers, strict=True):
        attention, own = block.attention, layer.self_attn
        qkv = (attention.to_q, attention.to_k, attention.to_v)
        found.append(([linear.weight for linear in qkv], own.in_proj_weight))
        found.append(([linear.bias for linear in qkv], own.in_proj_bias))
        for mine, other in (
            (attention.to_model, own.out_proj),
            (block.feedforward.to_hidden, layer.linear1),
            (block.feedforward.to_model, layer.linear2),
            (getattr(block.joins[0], norm), layer.norm1),
            (getattr(block.joins[1], norm), layer.norm2),
        ):
            found += [([mine.weight], other.weight), ([mine.bias], other.bias)]
    if placement == "pre":
        found += [([ours.final_norm.weight], theirs.norm.weight)]
        found += [([ours.final_norm.bias], theirs.norm.bias)]
    return found


def both(placement: str, feedforward: str, attention: str) -> tuple[Encoder, Any]:
    ours = our_encoder(placement, feedforward, attention)
    theirs = torch_encoder(placement, feedforward)
    with torch.no_grad():
        for mine, other in pairs(ours, theirs, placement):
            for part, value in zip(mine, other.chunk(len(mine)), strict=True):
                part.copy_(value)
    copied = sum(part.numel() for mine, _ in pairs(ours, theirs, placement) for part in mine)
    assert copied == sum(parameter.numel() for parameter in ours.parameters())
    return ours, theirs


def inputs() -> Tensor:
    return torch.randn(3, 7, D_MODEL, generator=torch.Generator().manual_seed(1))


def keep(padded: bool) -> Tensor:
    lengths = torch.tensor(LENGTHS if padded else [7, 7, 7])
    return torch.arange(7) < rearrange(lengths, "batch -> batch 1")


@cases[0]
@cases[1]
@cases[2]
@cases[3]
def test_outputs_and_gradients_are_those_of_torch(
    placement: str, feedforward: str, padded: bool, attention: str
) -> None:
    ours, theirs = both(placement, feedforward, attention)
    real = keep(padded)
    x, y = inputs().requires_grad_(), inputs().requires_grad_()
    hidden = ours(x, mask=Padding(keep=real) if padded else None).hidden
    expected = theirs(y, src_key_padding_mask=real.logical_not() if padded else None)
    torch.testing.assert_close(hidden[real], expected[real], rtol=1e-5, atol=1e-5)

    weight = torch.randn(3, 7, D_MODEL, generator=torch.Generator().manual_seed(2)) / 21
    (hidden * weight)[real].sum().backward()
    (expected * weight)[real].sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-5, atol=1e-5)
    for mine, other in pairs(ours, theirs, placement):
        gradient = torch.cat([part.grad for part in mine if part.grad is not None])
        torch.testing.assert_close(gradient, other.grad, rtol=1e-5, atol=1e-5)


@cases[0]
@cases[3]
def test_the_causal_mask_is_that_of_torch(placement: str, attention: str) -> None:
    ours, theirs = both(placement, "gelu", attention)
    future = torch.ones(7, 7).triu(1).bool()
    hidden, expected = ours(inputs(), mask=Causal()).hidden, theirs(inputs(), mask=future)
    torch.testing.assert_close(hidden, expected, rtol=1e-5, atol=1e-5)


def test_weights_are_those_of_torch() -> None:
    ours, theirs = both("post", "gelu", "explicit")
    weights = ours(inputs(), need_weights=True).weights
    _, expected = theirs.layers[0].self_attn(
        inputs(), inputs(), inputs(), need_weights=True, average_attn_weights=False
    )
    assert weights is not None
    torch.testing.assert_close(weights[0], expected, rtol=1e-5, atol=1e-6)
