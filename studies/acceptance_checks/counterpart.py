"""torch's own encoder with the weights of ours, where its layer can express the same."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from variants.encoder import Encoder
from variants.positions.position import Position

SEAMS = ("place", "rotate", "bias", "scores")
"""What a position may do besides adding a vector to each token."""


def why_none(encoder: Encoder) -> list[str]:
    """What torch's layer cannot express of an encoder; nothing, where it can all."""
    told: Any = encoder.config
    if told is None:
        return ["its config is not known"]
    attention: Any = encoder.attention
    position: Any = encoder.positions[0]
    heads, dims = attention.heads, encoder.dims
    more = [seam for seam in SEAMS if getattr(type(position), seam) is not getattr(Position, seam)]
    rules = {
        f"position {told.position.name} does more than add a vector": bool(more),
        "positions differ from layer to layer": len(encoder.positions) > 1,
        f"norm {told.norm.name}": told.norm.name != "layernorm",
        f"norm placement {told.norm_placement.name}": told.norm_placement.name not in PLACES,
        f"feed-forward {told.feedforward.name}": told.feedforward.name not in ACTIVATIONS,
        f"attention {told.attention.name} is no softmax": not attention.softmax,
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
    told: Any = encoder.config
    dims, pre = encoder.dims, told.norm_placement.name == "pre"
    place = PLACES[told.norm_placement.name]
    first: Any = encoder.blocks[0]
    layer = nn.TransformerEncoderLayer(
        dims.d_model,
        dims.n_heads,
        first.feedforward.to_hidden.out_features,
        dropout=0.0,
        activation=ACTIVATIONS[told.feedforward.name],
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
    """Each of torch's parameters, with ours."""
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
