"""Parity: the same outputs and mask meaning as torch's own layer, where a config has one."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool
from torch import Tensor, nn

from registry.conformance.checks import NotApplicable, require
from studies.acceptance_checks.check import Layer, Passed, Subject
from variants.encoder import Encoder
from variants.masks import Padding
from variants.positions.position import Position

LAYER = Layer("parity")

HIDDEN = 3
"""So many tokens at the end are padding."""


@LAYER.check(
    "heads are split or merged in another order than (heads d_head)",
    "scores are divided by √d_model instead of √d_head, or not at all",
    "norms sit at another place, or have another eps; a final norm too many or too few",
    "GELU in its tanh form against the exact one",
)
def outputs_are_those_of_the_layer_of_torch(subject: Subject) -> Passed:
    """`nn.TransformerEncoderLayer` with the same weights, in float64."""
    encoder = _doubled(subject)
    x, _ = _inputs(subject, encoder)
    with torch.no_grad():
        found, expected = encoder(x).hidden, _theirs(encoder, x, None)
    off = (found - expected).abs().max().item()
    require(off < 1e-8, f"states differ from torch's by up to {off:.2g}")
    return Passed(f"within {off:.1g}", {"parity_error": off})


@LAYER.check(
    "the mask is inverted: here True means may attend, in nn.MultiheadAttention ignore",
    "the mask is not broadcast over heads, or its axes are (key, query)",
    "padding is masked as queries, not as keys",
)
def a_mask_hides_what_it_hides_in_torch(subject: Subject) -> Passed:
    """Padded tokens change nothing, real ones do; and outputs are torch's, where there are any."""
    encoder = _doubled(subject, exactly=False)
    x, keep = _inputs(subject, encoder)
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(1)).to(x)
    real = rearrange(keep, "batch seq -> batch seq 1")
    with torch.no_grad():
        whole = encoder(x, mask=Padding(keep=keep)).hidden
        hidden = encoder(torch.where(real, x, noise), mask=Padding(keep=keep)).hidden
        seen = encoder(torch.where(real, noise, x), mask=Padding(keep=keep)).hidden
    leak = (whole - hidden).abs()[keep].max().item()
    require(leak < 1e-9, f"tokens that the mask hides change states by up to {leak:.2g}")
    require(
        (whole - seen).abs()[keep].max().item() > 1e-9, "tokens that the mask shows change nothing"
    )
    if why_none(encoder):
        return Passed("hidden tokens change nothing, seen ones do")
    with torch.no_grad():
        off = (whole - _theirs(encoder, x, keep)).abs()[keep].max().item()
    require(off < 1e-8, f"with padding, states differ from torch's by up to {off:.2g}")
    return Passed(f"hidden tokens change nothing; torch's states within {off:.1g}")


def _doubled(subject: Subject, exactly: bool = True) -> Encoder:
    encoder = copy.deepcopy(subject.encoder).double()
    if exactly and why_none(encoder):
        raise NotApplicable(f"torch's layer has no counterpart: {'; '.join(why_none(encoder))}")
    return encoder


def _inputs(subject: Subject, encoder: Encoder) -> tuple[Tensor, Bool[Tensor, "batch seq"]]:
    """Embedded tokens, and which of them are real."""
    batch, seq = 3, max(subject.length, HIDDEN + 2)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(batch, seq, encoder.dims.d_model, generator=generator, dtype=torch.float64)
    keep = torch.ones(batch, seq, dtype=torch.bool)
    keep[:, -HIDDEN:] = False
    return x.to(subject.work.device), keep.to(subject.work.device)


def _theirs(encoder: Encoder, x: Tensor, keep: Bool[Tensor, "batch seq"] | None) -> Tensor:
    """What torch's layers make of the same embedded tokens, positions added."""
    batch, seq, _ = x.shape
    mask = encoder.mask if keep is None else encoder.mask & Padding(keep=keep)
    heads = encoder.dims.n_heads
    allowed = mask.dense(batch, heads, seq, seq, device=x.device).expand(batch, heads, seq, seq)
    allowed = _without_empty_rows(allowed, keep)
    ignored = rearrange(allowed.logical_not(), "batch heads query key -> (batch heads) query key")
    position: nn.Module = encoder.positions[0]
    added = position.embed(mask.positions(batch, seq, x.device))  # type: ignore[operator]
    layers = counterpart(encoder)
    return layers(x if added is None else x + added.to(x), mask=ignored)


def _without_empty_rows(
    allowed: Bool[Tensor, "batch heads query key"], keep: Bool[Tensor, "batch seq"] | None
) -> Bool[Tensor, "batch heads query key"]:
    """A mask whose padded queries, which nobody looks at, see themselves where they see nothing.

    Raises:
        NotApplicable: If a real query sees nothing: torch's layer makes that nan.
    """
    empty = allowed.any(dim=-1).logical_not()
    real = empty if keep is None else empty & rearrange(keep, "batch query -> batch 1 query")
    if real.any():
        raise NotApplicable("the mask leaves a query without keys, which torch makes nan")
    itself = torch.eye(allowed.shape[-1], dtype=torch.bool, device=allowed.device)
    return allowed | (rearrange(empty, "batch heads query -> batch heads query 1") & itself)


SEAMS = ("place", "rotate", "bias", "scores")
"""What a position may do besides adding a vector to each token."""


def why_none(encoder: Encoder) -> list[str]:
    """What torch's layer cannot express of an encoder; nothing, where it can all."""
    config: Any = encoder.config
    if config is None:
        return ["its config is not known"]
    attention: Any = encoder.attention
    position: Any = encoder.positions[0]
    heads, dims = attention.heads, encoder.dims
    more = [seam for seam in SEAMS if getattr(type(position), seam) is not getattr(Position, seam)]
    rules = {
        f"position {config.position.name} does more than add a vector": bool(more),
        "positions differ from layer to layer": len(encoder.positions) > 1,
        f"norm {config.norm.name}": config.norm.name != "layernorm",
        f"norm placement {config.norm_placement.name}": config.norm_placement.name not in PLACES,
        f"feed-forward {config.feedforward.name}": config.feedforward.name not in ACTIVATIONS,
        f"attention {config.attention.name} is no softmax": not attention.softmax,
        "heads share keys and values": heads.n_kv_heads != dims.n_heads,
        "queries and keys are normalized": heads.qk_norm,
        f"scale {heads.scale}": heads.learned_scale or heads.factor(dims.d_head) != 1,
        "scores grow with the number of keys": attention.length_base is not None,
        "n_heads · d_head is not d_model": dims.n_heads * dims.d_head != dims.d_model,
        "linear maps have no bias": not dims.bias,
        "layers share weights": len(encoder.blocks) < dims.n_layers,
    }
    return [rule for rule, holds in rules.items() if holds]


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}
"""The feed-forward parts that torch's layer expresses, with what acts between its linear maps."""

PLACES = {"pre": "before", "post": "after"}
"""The norm placements of torch's layer, with what the norm of ours is called there."""


def counterpart(encoder: Encoder) -> nn.TransformerEncoder:
    """torch's encoder, in evaluation mode, with weights that are copied from ours."""
    config: Any = encoder.config
    dims, pre = encoder.dims, config.norm_placement.name == "pre"
    place = PLACES[config.norm_placement.name]
    first: Any = encoder.blocks[0]
    layer = nn.TransformerEncoderLayer(
        dims.d_model,
        dims.n_heads,
        first.feedforward.to_hidden.out_features,
        dropout=0.0,
        activation=ACTIVATIONS[config.feedforward.name],
        layer_norm_eps=getattr(first.joins[0], place).eps,
        batch_first=True,
        norm_first=pre,
        dtype=torch.float64,
    )
    last: Any = encoder.final_norm
    norm = nn.LayerNorm(dims.d_model, last.eps, dtype=torch.float64) if pre else None
    theirs = nn.TransformerEncoder(layer, dims.n_layers, norm, enable_nested_tensor=False)
    theirs = theirs.to(next(encoder.parameters()).device).eval()
    with torch.no_grad():
        for other, own in _pairs(encoder, theirs, place):
            other.copy_(own)
    return theirs


def _pairs(
    encoder: Encoder, theirs: nn.TransformerEncoder, place: str
) -> Iterator[tuple[Tensor, Tensor]]:
    for block, layer in zip(encoder.blocks, theirs.layers, strict=True):
        yield from _of_layer(block, layer, place)
    if theirs.norm is not None:
        last: Any = encoder.final_norm
        yield from ((theirs.norm.weight, last.weight), (theirs.norm.bias, last.bias))  # type: ignore[misc]


def _of_layer(block: Any, layer: Any, place: str) -> Iterator[tuple[Tensor, Tensor]]:
    attention, own = block.attention, layer.self_attn
    qkv = (attention.to_q, attention.to_k, attention.to_v)
    yield own.in_proj_weight, torch.cat([one.weight for one in qkv])
    yield own.in_proj_bias, torch.cat([one.bias for one in qkv])
    for other, mine in (
        (own.out_proj, attention.to_model),
        (layer.linear1, block.feedforward.to_hidden),
        (layer.linear2, block.feedforward.to_model),
        (layer.norm1, getattr(block.joins[0], place)),
        (layer.norm2, getattr(block.joins[1], place)),
    ):
        yield from ((other.weight, mine.weight), (other.bias, mine.bias))
