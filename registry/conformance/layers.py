"""Feed-forward layers, norms, norm placements, readouts and initializers."""

import math
from collections.abc import Callable
from copy import deepcopy
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from registry.conformance.checks import (
    left_alone,
    nothing_drawn,
    only_for,
    promise,
    relative_error,
    require,
    require_same,
)
from registry.conformance.subject import DIMS, WIDTH, Subject, slopes, vectors
from registry.registry import options_of
from variants.norms.layernorm import LayerNorm


@promise("feedforward")
def tokens_do_not_see_one_another(subject: Subject) -> None:
    """Each token by itself, in any number of leading axes, gets what it gets among others."""
    _require_tokens_by_themselves(subject.moved())


def _require_tokens_by_themselves(layer: Callable[[Tensor], Tensor], axes: bool = False) -> None:
    x = vectors(2, 5, WIDTH)
    together = layer(x)
    for sample, token in product(range(2), range(5)):
        at = (slice(sample, sample + 1), slice(token, token + 1)) if axes else (sample, token)
        require_same(layer(x[at]), together[at], f"token {token} by itself")


@promise("feedforward")
def a_given_d_ff_is_the_width_of_its_map_into_the_stream(subject: Subject) -> None:
    """`to_model`, by which name initializers that scale by depth know it in every layer."""
    names = [name for name, _, _ in options_of(subject.part)]
    only_for("d_ff" in names, "it has no option d_ff")
    only_for(subject.options.get("match") != "parameters", "its width follows from a plain layer's")
    found: Any = getattr(subject.with_options(d_ff=24).make(), "to_model", None)
    named = "call the linear map into the stream to_model: initializers look for that name"
    require(isinstance(found, nn.Linear), named)
    require(found.in_features == 24, f"d_ff = 24, but to_model takes {found.in_features} channels")


@promise("norm")
def tokens_are_normalized_by_themselves(subject: Subject) -> None:
    for axes in (True, False):
        _require_tokens_by_themselves(subject.moved(), axes)


@promise("norm")
def half_precision_neither_overflows_nor_drowns_in_eps(subject: Subject) -> None:
    """States of ±300 and of size 0.05, in float16 and bfloat16, against float64."""
    exact = subject.moved()
    signs = vectors(8, WIDTH).sign()
    for name, x in (("±300", 300 * signs), ("0.05", 0.05 * vectors(8, WIDTH))):
        for dtype in (torch.float16, torch.bfloat16):
            low = deepcopy(exact).to(dtype)
            given = x.to(dtype)
            found, expected = low(given), deepcopy(low).double()(given.double())
            what = f"states of {name} in {dtype}"
            require(found.dtype == dtype, f"{what}: the result is {found.dtype}")
            require(found.isfinite().all(), f"{what}: the result is not finite")
            error = relative_error(found, expected)
            require(error < 2e-2, f"{what}: off by {error:.2g} of the result")


@promise("norm")
def a_row_of_zeros_stays_finite_with_its_gradient(subject: Subject) -> None:
    norm, x = subject.moved(), torch.zeros(2, WIDTH).double().requires_grad_()
    out = norm(x)
    (gradient,) = slopes(out, x)
    require(out.isfinite().all(), "the result is not finite")
    require(gradient.isfinite().all(), "the gradient is not finite")


@promise("norm_placement")
def the_stream_is_normalized_once(subject: Subject) -> None:
    """A silent sublayer leaves the stream to a final norm as it was, or else normalized.

    Where `final_norm` is True, x must come out bit for bit: the residual branch is the plain
    stream. Where it is False, what comes out is a norm of x.
    """
    placement, x = subject.make().double(), 7 * vectors(2, 5, WIDTH) + 1
    out = placement(x, *[torch.zeros_like] * placement.sublayers)
    if subject.part.final_norm:
        require(torch.equal(out, x), "final_norm = True, but a silent sublayer changes the stream")
    else:
        expected = LayerNorm(DIMS).double()(x)
        what = "final_norm = False: what a silent sublayer leaves, against the norm of the stream"
        require_same(out, expected, what, 1e-5)


@promise("norm_placement")
def what_leaves_the_encoder_is_normalized(subject: Subject) -> None:
    """Each token has mean 0 and variance 1 as long as the norms keep their first weights."""
    hidden = subject.fresh()(7 * vectors(2, 5, WIDTH).float()).hidden
    require_same(hidden.mean(-1), torch.zeros(2, 5), "the mean of a token's state", 1e-5)
    variance = hidden.var(-1, unbiased=False)
    require_same(variance, torch.ones(2, 5), "the variance of a token's state", 1e-2)


@promise("norm_placement")
def each_sublayer_is_called_once_and_joins_the_stream(subject: Subject) -> None:
    """Both the stream and what the sublayer says reach the result, with their gradients."""
    placement, x = subject.moved(), vectors(2, 5, WIDTH).requires_grad_()
    seen: list[Tensor] = []
    said = [vectors(2, 5, WIDTH, seed=n + 1).requires_grad_() for n in range(placement.sublayers)]

    def says(words: Tensor) -> Callable[[Tensor], Tensor]:
        def sublayer(y: Tensor) -> Tensor:
            seen.append(y)
            return words + 0 * y

        return sublayer

    out = placement(x, *map(says, said))
    require(len(seen) == len(said), f"{len(said)} sublayers are called {len(seen)} times")
    for y in seen:
        require(y.shape == x.shape, f"a sublayer sees shape {tuple(y.shape)}")
    stream, *branches = slopes(out, x, *said, seed=9)
    for branch in branches:
        require(branch.abs().amax(-1).gt(0).all(), "what a sublayer says is lost")
    require(stream.abs().amax(-1).gt(0).all(), "the stream does not reach the result")


@promise("norm_placement")
def tokens_join_by_themselves(subject: Subject) -> None:
    placement = subject.moved()
    doubling = [_twice] * placement.sublayers
    _require_tokens_by_themselves(lambda x: placement(x, *doubling), axes=True)


def _twice(y: Tensor) -> Tensor:
    return 2 * y


KEEP = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 0, 1, 0]]).bool()


@promise("readout")
def only_real_tokens_are_read(subject: Subject) -> None:
    """One vector a sequence, or one a token; padding in any place changes nothing."""
    readout = subject.moved()
    hidden = vectors(4, 5, WIDTH).masked_fill(~KEEP.unsqueeze(-1), 0.0)
    out = readout(hidden, KEEP)
    shapes = ((4, WIDTH), (4, 5, WIDTH))
    require(tuple(out.shape) in shapes, f"it has shape {tuple(out.shape)}, not {shapes}")
    for row, keep in enumerate(KEEP):
        alone = readout(hidden[row : row + 1, keep], None)
        real = out[row : row + 1, keep] if out.ndim == 3 else out[row : row + 1]
        require_same(real, alone, f"sequence {row} with and without its pads")


@promise("readout")
def a_sequence_without_real_tokens_reads_zero(subject: Subject) -> None:
    readout, hidden = subject.moved(), torch.zeros(2, 5, WIDTH).double()
    hidden[1] = vectors(5, WIDTH)
    hidden.requires_grad_()
    out = readout(hidden, torch.tensor([[False] * 5, [True] * 5]))
    (gradient,) = slopes(out, hidden)
    require(out[0].eq(0).all(), "it reads something else than 0")
    require(out[1].ne(0).any(), "a sequence of real tokens reads 0")
    require(gradient.isfinite().all(), "a gradient is not finite")


Fill = Callable[[Any, Tensor, torch.Generator], None]
FILLS: dict[str, tuple[tuple[int, ...], Fill]] = {
    "matrix": ((24, 16), lambda part, weight, source: part.matrix(weight, source)),
    "table": ((12, 16), lambda part, weight, source: part.table(weight, source)),
    "bias": ((24,), lambda part, weight, source: part.bias(weight, 16, source)),
}


def _filled(subject: Subject, what: str, seed: int) -> Tensor:
    shape, fill = FILLS[what]
    weight = torch.full(shape, math.nan)
    fill(subject.make(), weight, torch.Generator().manual_seed(seed))
    return weight


@promise("initializer")
def every_number_is_filled(subject: Subject) -> None:
    for what in FILLS:
        require(_filled(subject, what, 0).isfinite().all(), f"{what} leaves numbers unfilled")


@promise("initializer")
def numbers_come_from_the_given_generator_alone(subject: Subject) -> None:
    with nothing_drawn("a global generator is used"):
        for what in FILLS:
            first, again, other = (_filled(subject, what, seed) for seed in (1, 1, 2))
            require(torch.equal(first, again), f"{what}: one generator gives two fillings")
            drawn = what != "bias" and first.std() > 0
            require(not (drawn and torch.equal(first, other)), f"{what}: the generator is not used")


@promise("feedforward", "norm", "norm_placement", "readout")
def its_input_is_left_as_it_is(subject: Subject) -> None:
    part, x = subject.moved(), vectors(4, 5, WIDTH)
    more = {"norm_placement": [_twice] * getattr(part, "sublayers", 0), "readout": [KEEP]}
    with left_alone(x, detail="its input is changed in place"):
        part(x, *more.get(subject.kind, []))
