"""Readouts."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import torch

from registry.promises.promise import insist, insist_same, promise
from registry.promises.subject import WIDTH, Subject, vectors

KEEP = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 0, 1, 0]]).bool()


@promise()
def only_real_tokens_are_read(subject: Subject) -> None:
    """One vector a sequence, or one a token; padding in any place changes nothing."""
    readout = subject.moved()
    hidden = vectors(4, 5, WIDTH).masked_fill(~KEEP.unsqueeze(-1), 0.0)
    out = readout(hidden, KEEP)
    shapes = ((4, WIDTH), (4, 5, WIDTH))
    insist(tuple(out.shape) in shapes, f"it has shape {tuple(out.shape)}, not {shapes}")
    for row, keep in enumerate(KEEP):
        alone = readout(hidden[row : row + 1, keep], None)
        real = out[row : row + 1, keep] if out.ndim == 3 else out[row : row + 1]
        insist_same(real, alone, f"sequence {row} with and without its pads")


@promise()
def a_sequence_without_real_tokens_reads_zero(subject: Subject) -> None:
    readout, hidden = subject.moved(), torch.zeros(2, 5, WIDTH).double()
    hidden[1] = vectors(5, WIDTH)
    hidden.requires_grad_()
    out = readout(hidden, torch.tensor([[False] * 5, [True] * 5]))
    (gradient,) = torch.autograd.grad((out * vectors(*out.shape)).sum(), hidden)
    insist(out[0].eq(0).all(), "it reads something else than 0")
    insist(out[1].ne(0).any(), "a sequence of real tokens reads 0")
    insist(gradient.isfinite().all(), "a gradient is not finite")


@promise()
def its_input_is_left_as_it_is(subject: Subject) -> None:
    readout, hidden = subject.moved(), vectors(4, 5, WIDTH)
    before = hidden.clone()
    readout(hidden, KEEP)
    insist(torch.equal(hidden, before), "its input is changed in place")
