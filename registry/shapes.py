"""The tensors on the way through an encoder: what they are, their axes and shapes."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from registry.watching import Watch

if TYPE_CHECKING:
    from torch import Tensor

    from variants.encoder import Encoder

Shape = tuple[str, str, str, str]
"""A tensor's name, its axes, its shape, and what is to be said of where it is held."""

EVERY = "in each layer"


def tensors_of(encoder: "Encoder", watch: Watch, sample: "Tensor", out: Any) -> Iterator[Shape]:
    """Every tensor on the way, from the tokens to the logits, as it was seen in a forward pass.

    Args:
        encoder: The encoder.
        watch: What was seen of its modules.
        sample: What went in.
        out: What came out.
    """
    axes = "batch seq d_model" if sample.ndim == 3 else "batch seq"
    yield "tokens", axes, _text(sample.shape), ""
    if "embedding" in watch.shapes:
        yield "token vectors", "batch seq d_model", watch.shapes["embedding"], ""
    yield from _of_positions(encoder, sample.shape[1])
    yield from _of_attention(encoder, watch)
    yield from _of_feedforward(encoder, watch)
    yield "final states", "batch seq d_model", _text(out.hidden.shape), ""
    axes = "batch seq d_model" if out.readout.ndim == 3 else "batch d_model"
    yield "readout", axes, _text(out.readout.shape), ""
    if out.logits is not None:
        yield "logits", axes.replace("d_model", "n_classes"), _text(out.logits.shape), ""


def _of_positions(encoder: "Encoder", length: int) -> Iterator[Shape]:
    """What the position adds to token vectors and to scores."""
    import torch

    position: Any = encoder.positions[0]
    each = EVERY if len(encoder.positions) > 1 else "once for all layers"
    with torch.no_grad():
        index = torch.arange(length).expand(1, length)
        added, bias = position.embed(index), position.bias(index, index)
    if added is not None:
        yield "added to token vectors", "batch seq d_model", _text(added.shape), each
    if bias is not None:
        yield "position bias", "batch heads query key", _text(bias.shape), each


def _of_attention(encoder: "Encoder", watch: Watch) -> Iterator[Shape]:
    projected = watch.shapes.get("blocks.0.attention.to_k", "")
    heads: Any = encoder.attention.heads
    if heads.n_kv_heads != encoder.dims.n_heads:
        shared = f"{heads.n_kv_heads} heads for {encoder.dims.n_heads} of the queries, {EVERY}"
        yield "keys, values as projected", "batch seq (kv_heads d_head)", projected, shared
    q, k, v = watch.given["attention"][:3]
    yield "queries (q)", "batch heads query d_head", q, EVERY
    yield "keys (k)", "batch heads key d_head", k, EVERY
    yield "values (v)", "batch heads key d_head", v, EVERY
    batch, n_heads, queries, _ = q.split("×")
    scores = "×".join((batch, n_heads, queries, k.split("×")[2]))
    held = EVERY if encoder.reference is encoder.attention else _elsewhere(encoder)
    yield "scores", "batch heads query key", scores, held
    yield "weights", "batch heads query key", scores, held
    yield "mixed values", "batch heads query d_head", watch.shapes["attention"], EVERY
    yield "attention's output", "batch seq d_model", watch.shapes["blocks.0.attention"], EVERY


def _elsewhere(encoder: "Encoder") -> str:
    names: Any = encoder.attention.name, encoder.reference.name
    return f"as {names[0]} works; whole by {names[1]}, where weights are asked for"


def _of_feedforward(encoder: "Encoder", watch: Watch) -> Iterator[Shape]:
    """The maps inside the feed-forward layer, and what it writes into the stream."""
    block: Any = encoder.blocks[0]
    feedforward = block.feedforward
    if feedforward is None:
        return
    path = "blocks.0.feedforward"
    for name, _ in feedforward.named_children():
        if name != "to_model" and f"{path}.{name}" in watch.shapes:
            yield f"feed-forward, {name}", "batch seq d_ff", watch.shapes[f"{path}.{name}"], EVERY
    yield "feed-forward's output", "batch seq d_model", watch.shapes[path], EVERY


def _text(shape: Any) -> str:
    return "×".join(map(str, shape))
