"""Norms."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from copy import deepcopy

import torch

from registry.promises.promise import insist, insist_same, promise
from registry.promises.subject import WIDTH, Subject, vectors


@promise()
def tokens_are_normalized_by_themselves(subject: Subject) -> None:
    norm, x = subject.moved(), vectors(2, 5, WIDTH)
    together = norm(x)
    for token in range(5):
        alone = norm(x[:1, token : token + 1])
        insist_same(alone, together[:1, token : token + 1], f"token {token} by itself")
        insist_same(norm(x[0, token]), together[0, token], f"token {token} without other axes")


@promise()
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
            insist(found.dtype == dtype, f"{what}: the result is {found.dtype}")
            insist(found.isfinite().all(), f"{what}: the result is not finite")
            error = ((found.double() - expected).norm() / expected.norm()).item()
            insist(error < 2e-2, f"{what}: off by {error:.2g} of the result")


@promise()
def a_row_of_zeros_stays_finite_with_its_gradient(subject: Subject) -> None:
    norm, x = subject.moved(), torch.zeros(2, WIDTH).double().requires_grad_()
    out = norm(x)
    (gradient,) = torch.autograd.grad((out * vectors(2, WIDTH)).sum(), x)
    insist(out.isfinite().all(), "the result is not finite")
    insist(gradient.isfinite().all(), "the gradient is not finite")


@promise()
def its_input_is_left_as_it_is(subject: Subject) -> None:
    norm, x = subject.moved(), vectors(2, 5, WIDTH)
    before = x.clone()
    norm(x)
    insist(torch.equal(x, before), "its input is changed in place")
