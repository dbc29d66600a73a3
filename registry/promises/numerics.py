"""Shapes, precisions, modes and gradients."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import torch
from torch import Tensor

from registry.promises.promise import insist, insist_same, promise
from registry.promises.subject import (
    WIDTH,
    Subject,
    answers,
    gradients,
    in_dtype,
    moved,
    ragged,
    stay_in_place,
    tokens,
    vectors,
)

DTYPES = (torch.float64, torch.float32, torch.bfloat16)


@promise()
def shapes_and_dtypes_are_kept(subject: Subject) -> None:
    for dtype in DTYPES:
        encoder = in_dtype(subject.encoder(), dtype)
        for given in (tokens(2, 1), vectors(2, 7, WIDTH).to(dtype), tokens(0, 4)):
            out = encoder(given)
            shape, found = (*given.shape[:2], WIDTH), tuple(out.hidden.shape)
            what = f"{dtype}, batch {given.shape[0]}, length {given.shape[1]}"
            insist(found == shape, f"{what}: states have shape {found}, not {shape}")
            insist(out.hidden.dtype == dtype, f"{what}: states are {out.hidden.dtype}")
            insist(out.hidden.isfinite().all(), f"{what}: a state is not finite")
            insist(out.readout.dtype == dtype, f"{what}: the readout is {out.readout.dtype}")


@promise()
def gradients_are_finite_and_reach_every_parameter(subject: Subject) -> None:
    encoder = subject.unused().train()
    found = gradients(encoder, encoder(tokens(3, 9)).readout)
    for path, parameter in encoder.named_parameters():
        if not parameter.requires_grad:
            continue
        insist(path in found, f"{path} has no part in the result")
        insist(found[path].isfinite().all(), f"the gradient of {path} is not finite")
        # What is added to every key alike leaves all weights as they are.
        free = path.endswith("to_k.bias")
        insist(free or found[path].any(), f"the gradient of {path} is 0 everywhere")


@promise()
def training_without_dropout_equals_evaluation(subject: Subject) -> None:
    """With gradients and without."""
    encoder, results = subject.unused(), list[Tensor]()
    for training in (False, True):
        for recorded in (True, False):
            with torch.set_grad_enabled(recorded):
                results.append(encoder.train(training)(ragged()).hidden.detach())
    for other in results[1:]:
        insist_same(other, results[0], "training against evaluation")


@promise()
def evaluation_is_deterministic(subject: Subject) -> None:
    """Dropout is off, random places are the same each time, torch's generator is left alone."""
    encoder = moved(subject.fresh(dropout=0.5)).double().eval()
    before = torch.get_rng_state()
    first, second = encoder(ragged()).hidden, encoder(ragged()).hidden
    insist(torch.equal(first, second), "asked twice, an encoder in evaluation answers differently")
    untouched = torch.equal(before, torch.get_rng_state())
    insist(untouched, "evaluation draws from torch's global generator")
    stay_in_place(encoder)
    insist_same(encoder(ragged()).hidden, subject.encoder()(ragged()).hidden, "dropout of 0.5")


@promise()
def the_result_does_not_depend_on_the_precision(subject: Subject) -> None:
    encoder = subject.encoder()
    exact = encoder(ragged()).hidden
    for dtype, allowed in ((torch.float32, 1e-5), (torch.bfloat16, 3e-2)):
        hidden = in_dtype(encoder, dtype)(ragged()).hidden
        error = ((hidden.double() - exact).norm() / exact.norm()).item()
        insist(error < allowed, f"{dtype} is off by {error:.2g} of the states (allowed: {allowed})")


@promise()
def autocast_changes_rounding_alone(subject: Subject) -> None:
    """Near the start of a sequence, and at indices around 1000, whose phases must stay exact."""
    encoder = in_dtype(subject.encoder(), torch.float32)
    far = torch.arange(6).unsqueeze(0) + 1000
    starts = (None, far) if answers(encoder, far) else (None,)
    for index in starts:
        exact = encoder(ragged(), positions=index).hidden
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = encoder(ragged(), positions=index).hidden
        error = ((hidden.float() - exact).norm() / exact.norm()).item()
        where = "" if index is None else " at indices around 1000"
        insist(error < 3e-2, f"the states move by {error:.2g} of their size{where}")
