"""Norm placements."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable

import torch
from torch import Tensor

from registry.promises.promise import insist, insist_same, promise
from registry.promises.subject import DIMS, WIDTH, Subject, vectors
from variants.norms.layernorm import LayerNorm


@promise()
def the_stream_is_normalized_once(subject: Subject) -> None:
    """A silent sublayer leaves the stream to a final norm as it was, or else normalized.

    Where `final_norm` is True, x must come out bit for bit: the residual branch is the plain
    stream. Where it is False, what comes out is a norm of x.
    """
    placement, x = subject.make().double(), 7 * vectors(2, 5, WIDTH) + 1
    out = placement(x, *[torch.zeros_like] * placement.sublayers)
    if subject.part.final_norm:
        insist(torch.equal(out, x), "final_norm = True, but a silent sublayer changes the stream")
    else:
        expected = LayerNorm(DIMS).double()(x)
        what = "final_norm = False: what a silent sublayer leaves, against the norm of the stream"
        insist_same(out, expected, what, 1e-5)


@promise()
def what_leaves_the_encoder_is_normalized(subject: Subject) -> None:
    """Each token has mean 0 and variance 1 as long as the norms keep their first weights."""
    hidden = subject.fresh()(7 * vectors(2, 5, WIDTH).float()).hidden
    insist_same(hidden.mean(-1), torch.zeros(2, 5), "the mean of a token's state", 1e-5)
    variance = hidden.var(-1, unbiased=False)
    insist_same(variance, torch.ones(2, 5), "the variance of a token's state", 1e-2)


@promise()
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
    insist(len(seen) == len(said), f"{len(said)} sublayers are called {len(seen)} times")
    for y in seen:
        insist(y.shape == x.shape, f"a sublayer sees shape {tuple(y.shape)}")
    loss = (out * vectors(2, 5, WIDTH, seed=9)).sum()
    stream, *branches = torch.autograd.grad(loss, [x, *said])
    for branch in branches:
        insist(branch.abs().amax(-1).gt(0).all(), "what a sublayer says is lost")
    insist(stream.abs().amax(-1).gt(0).all(), "the stream does not reach the result")


@promise()
def tokens_join_by_themselves(subject: Subject) -> None:
    placement, x = subject.moved(), vectors(2, 5, WIDTH)
    doubling = [_twice] * placement.sublayers
    together = placement(x, *doubling)
    for token in range(5):
        one = slice(token, token + 1)
        insist_same(placement(x[:1, one], *doubling), together[:1, one], f"token {token} by itself")


@promise()
def its_input_is_left_as_it_is(subject: Subject) -> None:
    placement, x = subject.moved(), vectors(2, 5, WIDTH)
    before = x.clone()
    placement(x, *[_twice] * placement.sublayers)
    insist(torch.equal(x, before), "the stream is changed in place")


def _twice(y: Tensor) -> Tensor:
    return 2 * y
