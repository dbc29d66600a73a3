"""Which tokens influence which outputs of an attention, whoever wrote it."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

if TYPE_CHECKING:
    from variants.masks.mask import Mask

Attend = Callable[[Tensor], Tensor]
States = Float[Tensor, "batch token width"]
Reach = Bool[Tensor, "batch query key"]
Crossing = Bool[Tensor, "batch other"]


@dataclass(frozen=True)
class Subject:
    """What is probed: how to run it under a mask, and what is known of it."""

    run: Callable[[Tensor, "Mask"], Any]
    heads: int = 1
    width: int = 8
    layers: int = 1
    residual: bool = False


def subject_of(attend: nn.Module | Callable[..., Any], dtype: torch.dtype) -> Subject:
    """A copy of a module that can be handed a mask; a function as it is.

    Raises:
        TypeError: If the module is none that is known, or it is nothing that can be called.
    """
    from variants import Encoder

    if not callable(attend):
        raise TypeError(f"attention is a module or a function; got {type(attend).__name__}")
    if not isinstance(attend, nn.Module):
        return Subject(attend)
    module: Any = deepcopy(attend).to(dtype)
    if isinstance(module, Encoder):
        dims, layers = module.dims, len(module.blocks)
        return Subject(
            lambda x, mask: module(x, mask=mask), dims.n_heads, dims.d_model, layers, residual=True
        )
    if isinstance(module, nn.MultiheadAttention):
        return _of_torch(
            *(module, module),
            lambda x, ignore: module(x, x, x, attn_mask=ignore, need_weights=False)[0],
        )
    if isinstance(module, nn.TransformerEncoderLayer):
        return _of_torch(module.self_attn, module, lambda x, ignore: module(x, src_mask=ignore))
    if isinstance(module, nn.TransformerEncoder):
        inner: Any = module.layers[0]
        return _of_torch(inner.self_attn, module, lambda x, ignore: module(x, mask=ignore))
    raise TypeError(
        f"{type(attend).__name__} takes a mask in a way that is not known: give a function of the "
        "floats instead, such as lambda x: layer(x, attention_mask=…)"
    )


def _of_torch(
    attention: nn.MultiheadAttention, module: nn.Module, call: Callable[[Tensor, Tensor], Tensor]
) -> Subject:
    """A module of torch, which may want the tokens first and wants a mask of what to ignore."""
    heads, layers = attention.num_heads, len(getattr(module, "layers", [module]))

    def run(x: States, mask: "Mask") -> States:
        ignore = mask.to_ignore(x.shape[0], heads, x.shape[1], x.shape[1])
        if attention.batch_first:
            return call(x, ignore)
        out = call(rearrange(x, "batch token width -> token batch width"), ignore)
        return rearrange(out, "token batch width -> batch token width")

    return Subject(run, heads, attention.embed_dim, layers, residual=module is not attention)


def states_of(run: Callable[..., Any], x: States, *mask: "Mask") -> States:
    """What the attention answers, taken out of the tuple or model output that it may stand in.

    Raises:
        TypeError, ValueError: If it is no tensor of shape (batch, token, …).
    """
    try:
        out = run(x, *mask)
    except RuntimeError as error:
        error.add_note(
            f"It was called with {x.dtype} of shape {tuple(x.shape)}; "
            "the arguments dtype, batch, length and width choose others."
        )
        raise
    out = getattr(out, "hidden", getattr(out, "last_hidden_state", out))
    out = out[0] if isinstance(out, tuple | list) else out
    if not isinstance(out, Tensor):
        raise TypeError(f"attention answers with a tensor; got {type(out).__name__}")
    if out.ndim != 3 or out.shape[:2] != x.shape[:2]:
        raise ValueError(
            f"attention over {tuple(x.shape)} answers with (batch, token, width); "
            f"got {tuple(out.shape)}"
        )
    return out


def influences(
    attend: Attend, x: States, other: States, gradient: bool
) -> Iterator[tuple[str, Crossing, Reach]]:
    """For each way to find out, its name, which sequences of the batch influence which, and which
    keys influence which queries of their sequence.

    Raises:
        AssertionError: If the answer is not finite.
        ValueError: If it is random, or has no gradient where one is wanted.
    """
    with torch.no_grad():
        before, again = attend(x), attend(x)
    if not torch.equal(before.nan_to_num(), again.nan_to_num()):
        raise ValueError("attention answers differently when asked twice: use eval(), no dropout")
    if not before.isfinite().all():
        row, query = (~before.isfinite()).any(dim=-1).nonzero()[0].tolist()
        raise AssertionError(
            f"the result is {before[row, query].sum().item()} at (batch {row}, query {query}); "
            "a query that may attend to nothing gets 0"
        )
    yield "replacing the key's token", *_by_replacing(attend, x, other, before)
    if gradient:
        yield "gradient", *_by_gradient(attend, x)


@torch.no_grad()
def _by_replacing(
    attend: Attend, x: States, other: States, before: States
) -> tuple[Crossing, Reach]:
    least = torch.finfo(x.dtype).eps ** 0.6 * before.abs().max()
    other = other * x.abs().max()

    def moved(replace: Bool[Tensor, "#batch #key 1"]) -> Bool[Tensor, "batch query"]:
        change = (attend(torch.where(replace, other, x)) - before).abs().amax(dim=-1)
        return ~(change <= least)  # NaN is a change

    rows, keys = (torch.arange(n) for n in x.shape[:2])
    crossing = [moved(rearrange(rows == row, "row -> row 1 1")).any(dim=-1) for row in rows]
    reach = [moved(rearrange(keys == key, "key -> 1 key 1")) for key in keys]
    return torch.stack(crossing, dim=-1), torch.stack(reach, dim=-1)


def _by_gradient(attend: Attend, x: States) -> tuple[Crossing, Reach]:
    x = x.clone().requires_grad_()
    out = attend(x)
    if not out.requires_grad:
        raise ValueError("the result has no gradient to its inputs; gradient=False leaves it out")
    # A direction of its own for each channel: their plain sum is constant after a norm.
    totals = out @ torch.linspace(1, 2, out.shape[2], dtype=x.dtype) ** 3

    def reached(total: Float[Tensor, ""]) -> Bool[Tensor, "batch key"]:
        (slope,) = torch.autograd.grad(
            total, x, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return (slope != 0).any(dim=-1)

    rows, keys = (torch.arange(n) for n in x.shape[:2])
    crossing = [reached(totals[row].sum()).any(dim=-1) for row in rows]
    reach = [reached(totals[:, key].sum()) for key in keys]
    return torch.stack(crossing), torch.stack(reach, dim=1)


def after_layers(reach: Reach, layers: int) -> Reach:
    """Which keys reach which queries through so many layers, each of which passes on as one."""
    once, total = reach.double(), reach
    for _ in range(layers - 1):
        further = einsum(total.double(), once, "batch query via, batch via key -> batch query key")
        total = further > 0
    return total
