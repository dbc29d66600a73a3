"""Asserts for your own tests of masks and attention; they need no pytest.

`assert_same_mask` compares two masks cell by cell. `assert_no_leak` changes what a mask forbids and
looks whether anything moves; `assert_padding_invariant` compares padded sequences with bare ones.
Both take torch's modules, this project's Encoder, or any function of floats of shape (batch, token,
width), whose result has the same leading shape or is a tuple or model output that begins with it.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from variants.dims import Dims
from variants.masks._cells import Sizes, drawn
from variants.masks.dense import Dense
from variants.masks.mask import Both, Mask
from variants.masks.padding import Padding

Attend = Callable[[Tensor], Tensor]
States = Float[Tensor, "batch token width"]
Reach = Bool[Tensor, "batch query key"]
Crossing = Bool[Tensor, "batch other"]

LARGE = 1e6
"""Inputs of this size make scores that beat a finite number in the place of -inf."""


def assert_same_mask(
    a: Mask | Tensor,
    b: Mask | Tensor,
    batch: int | None = None,
    heads: int | None = None,
    queries: int | None = None,
    keys: int | None = None,
) -> None:
    """Two masks allow the same cells; a tensor is read as `Dense(tensor)`, True = may attend.

    Sizes that are not given are those of the tensors in the masks, or 8 queries and keys.

    Raises:
        AssertionError: With both drawn side by side, and the first cell that differs.
    """
    masks = [_mask(a), _mask(b)]
    known = Both(*masks).sizes(queries, keys, default=8)
    shape = (batch or known.batch, heads or known.heads, known.queries, known.keys)
    first, second = (mask.dense(*shape).expand(shape) for mask in masks)
    differ = first != second
    if not differ.any():
        return
    row, head, query, key = differ.nonzero()[0].tolist()
    verb = "allows" if first[row, head, query, key] else "forbids"
    drawings = {"first": first, "second": second, "differ": differ}
    raise AssertionError(
        f"masks differ in {int(differ.sum())} of {differ.numel()} cells; the first one {verb} "
        f"(batch {row}, head {head}, query {query}, key {key}), the second does not\n"
        f"first:  {masks[0]!r}\nsecond: {masks[1]!r}\n"
        + _side_by_side({name: cells[row, head] for name, cells in drawings.items()})
    )


def assert_no_leak(
    attend: nn.Module | Callable[[Tensor], Any],
    mask: Mask | Tensor,
    *,
    batch: int | None = None,
    length: int | None = None,
    width: int | None = None,
    layers: int | None = None,
    residual: bool | None = None,
    gradient: bool = True,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> None:
    """A query is influenced by the keys that it may attend to, and by no others.

    Each token is replaced in turn, then each sequence of the batch, and each output differentiated,
    at inputs of ordinary and of huge size. No other sequence of the batch may matter. What a query
    itself adds to its own scores is no leak.

    Args:
        attend: nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder or Encoder,
            which is copied and handed the mask; or a function that applies the mask by itself.
        mask: What every layer should obey; a tensor is read as `Dense(tensor)`.
        batch: Sequences; by default as many as the mask holds, and 2 where all are alike.
        length: Tokens; by default as many as the mask holds, else 6.
        width: Width of a token; by default that of the module, else 8.
        layers: How many layers pass on what they saw; by default those of the module, else 1.
        residual: Does a token pass itself on? By default as in the module, else no.
        gradient: False for attention without a backward pass.
        dtype: Of the inputs, and of the copied module.
        seed: Of the inputs.

    Raises:
        AssertionError: Naming the first (batch, query, key), with drawings; or the sequences.
        ValueError: If the result is random, has no gradient or another shape.
    """
    subject, mask = _subject_of(attend, dtype), _mask(mask)
    sizes = mask.sizes(length, length, default=6)
    batch = batch or (2 if sizes.batch == 1 else sizes.batch)
    sizes = Sizes(batch, max(subject.heads, sizes.heads), sizes.keys, sizes.keys)
    passes_itself = subject.residual if residual is None else residual
    must, may = _reach(mask, sizes, layers or subject.layers, passes_itself)
    x, other = _inputs(sizes.batch, sizes.keys, width or subject.width, dtype, seed)
    given = [mask] * isinstance(attend, nn.Module)
    for scale in (1.0, LARGE):
        for way, crossing, reached in _influences(
            lambda tokens: _states_of(subject.run, tokens, *given), scale * x, other, gradient
        ):
            _refuse_crossing(crossing, f"inputs of size {scale:g}")
            how = f"found by {way}, inputs of size {scale:g}"
            _refuse(reached & ~may, "a forbidden key reaches a query", how, may, reached)
            if scale == 1:  # scores of huge inputs leave one key all the weight
                missing = must & ~reached
                _refuse(missing, "an allowed key does not reach its query", how, must, reached)


def assert_padding_invariant(
    encode: nn.Module | Callable[[Tensor, Mask], Any],
    *,
    length: int = 5,
    pads: Sequence[int] = (1, 4),
    sides: Sequence[Literal["left", "right"]] = ("left", "right"),
    width: int | None = None,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> None:
    """Sequences get the same result alone as padded, in one batch with longer ones.

    Args:
        encode: A module as for `assert_no_leak`, or a function of floats and a `Padding`.
        length: Tokens of the longest sequence.
        pads: How many paddings to add to the longest.
        sides: Where they stand; on the left, positions must count from the first real token.
        width: Width of a token; by default that of the module, else 8.
        dtype: Of the inputs, and of the copied module.
        seed: Of the inputs.

    Raises:
        AssertionError: Naming the side, the sequence and the token.
    """
    subject = _subject_of(encode, dtype)
    lengths = sorted({length, length // 2 + 1, 1}, reverse=True)
    tokens, _ = _inputs(len(lengths), length, width or subject.width, dtype, seed)
    for side, pad in ((side, pad) for side in sides for pad in pads):
        # Padding is large, so that the least share of it shows.
        padded = torch.full((len(lengths), length + pad, tokens.shape[2]), 1e3, dtype=dtype)
        real = [slice(-n, None) if side == "left" else slice(n) for n in lengths]
        keep = torch.zeros(padded.shape[:2], dtype=torch.bool)
        for row, span in enumerate(real):
            padded[row, span], keep[row, span] = tokens[row, : lengths[row]], True
        together = _states_of(subject.run, padded, Padding(keep=keep))
        for row, span in enumerate(real):
            bare = tokens[row : row + 1, : lengths[row]]
            alone = _states_of(subject.run, bare, Padding(lengths=[lengths[row]]))
            where = f"sequence {row}, {lengths[row]} tokens and {pad} more on the {side}"
            _refuse_other(together[row, span], alone[0], where)


@dataclass(frozen=True)
class _Subject:
    run: Callable[[Tensor, Mask], Any]
    heads: int = 1
    width: int = 8
    layers: int = 1
    residual: bool = False


def _subject_of(attend: nn.Module | Callable[..., Any], dtype: torch.dtype) -> _Subject:
    """A copy of a module that can be handed a mask; a function as it is.

    Raises:
        TypeError: If the module is none that is known, or it is nothing that can be called.
    """
    if not callable(attend):
        raise TypeError(f"attention is a module or a function; got {type(attend).__name__}")
    if not isinstance(attend, nn.Module):
        return _Subject(attend)
    module: Any = deepcopy(attend).to(dtype)
    dims = getattr(module, "dims", None)
    # Known by its sizes: the Encoder itself knows masks, so it is not imported here.
    if isinstance(dims, Dims) and hasattr(module, "blocks"):
        layers = len(module.blocks)
        return _Subject(
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
) -> _Subject:
    """A module of torch, which may want the tokens first and wants a mask of what to ignore."""
    heads, layers = attention.num_heads, len(getattr(module, "layers", [module]))

    def run(x: States, mask: Mask) -> States:
        ignore = mask.to_ignore(x.shape[0], heads, x.shape[1], x.shape[1])
        if attention.batch_first:
            return call(x, ignore)
        out = call(rearrange(x, "batch token width -> token batch width"), ignore)
        return rearrange(out, "token batch width -> batch token width")

    return _Subject(run, heads, attention.embed_dim, layers, residual=module is not attention)


def _states_of(run: Callable[..., Any], x: States, *mask: Mask) -> States:
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


def _influences(
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


def _after_layers(reach: Reach, layers: int) -> Reach:
    """Which keys reach which queries through so many layers, each of which passes on as one."""
    once, total = reach.double(), reach
    for _ in range(layers - 1):
        further = einsum(total.double(), once, "batch query via, batch via key -> batch query key")
        total = further > 0
    return total


def _inputs(
    batch: int, length: int, width: int, dtype: torch.dtype, seed: int
) -> tuple[States, States]:
    generator = torch.Generator().manual_seed(seed)
    x, other = torch.randn(2, batch, length, width, generator=generator, dtype=torch.float64)
    return x.to(dtype), other.to(dtype)


def _reach(mask: Mask, sizes: Sizes, layers: int, residual: bool) -> tuple[Reach, Reach]:
    """Which keys must reach which queries, and which may."""
    shape = sizes.shape
    reach = mask.dense(*shape).expand(shape).any(dim=1)
    itself = torch.eye(sizes.keys, dtype=torch.bool)
    must = reach | (itself & residual)
    # The query's own scores weigh what it sees.
    may = must | (itself & reach.any(dim=-1, keepdim=True))
    must, may = _after_layers(must, layers), _after_layers(may, layers)
    keep = mask.keep(sizes.batch, sizes.keys)
    if keep is not None:  # what stands at padding is nobody's promise
        must = must & rearrange(keep, "batch query -> batch query 1")
    return must, may


def _mask(given: Mask | Tensor) -> Mask:
    if not isinstance(given, Mask | Tensor):
        raise TypeError(f"a mask is a Mask or a boolean tensor; got {type(given).__name__}")
    return Dense(given) if isinstance(given, Tensor) else given


def _refuse_crossing(crossing: Crossing, how: str) -> None:
    others = crossing & ~torch.eye(crossing.shape[0], dtype=torch.bool)
    if others.any():
        row, other = others.nonzero()[0].tolist()
        raise AssertionError(
            f"sequence {other} of the batch reaches sequence {row}, which no mask allows; {how}"
        )


def _refuse(wrong: Reach, what: str, how: str, expected: Reach, reached: Reach) -> None:
    if not wrong.any():
        return
    row, query, key = wrong.nonzero()[0].tolist()
    raise AssertionError(
        f"{what} at (batch {row}, query {query}, key {key}), the first of {int(wrong.sum())} such "
        f"cells; {how}\n" + _side_by_side({"expected": expected[row], "found": reached[row]})
    )


def _refuse_other(together: Tensor, alone: Tensor, where: str) -> None:
    change = (together - alone).abs().amax(dim=-1)
    wrong = ~(change <= torch.finfo(alone.dtype).eps ** 0.6 * alone.abs().max())  # NaN is wrong
    if wrong.any():
        token = int(wrong.nonzero()[0])
        raise AssertionError(
            f"padding changes the result: {where}; token {token} moves by {change[token].item():g}"
        )


def _side_by_side(drawings: dict[str, Bool[Tensor, "query key"]]) -> str:
    columns = [[name, *drawn(cells).split("\n")] for name, cells in drawings.items()]
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
