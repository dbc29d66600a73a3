"""What stands beside a sequence, before it or after it does not change its result."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable
from copy import deepcopy

import torch
import torch.nn.functional as F

from registry.promises.promise import insist, insist_same, promise
from registry.promises.subject import SYMBOLS, Subject, gradients, ragged, tokens
from variants import Encoder, EncoderOutput
from variants.masks import Causal, Documents, Full


@promise()
def a_sample_alone_equals_itself_in_any_batch(subject: Subject) -> None:
    """Among other sequences, and padded on the right, on the left and on both sides."""
    encoder, alone = subject.encoder(), tokens(1, 5)
    expected = encoder(alone)
    for left, right in ((0, 0), (0, 4), (4, 0), (1, 2)):
        where = f"among other sequences, {left} pads on the left, {right} on the right"
        row = F.pad(alone, (left, right))
        out = encoder(torch.cat([row, tokens(2, row.shape[1], seed=1)]))
        real = slice(left, left + 5)
        insist_same(out.hidden[:1, real], expected.hidden, f"states {where}")
        readout = out.readout[:1, real] if out.readout.ndim == 3 else out.readout[:1]
        insist_same(readout, expected.readout, f"readout {where}")
        pads = torch.cat([out.hidden[0, :left], out.hidden[0, left + 5 :]])
        insist(pads.eq(0).all(), f"states at pads are not 0 {where}")


@promise()
def samples_of_a_batch_know_nothing_of_one_another(subject: Subject) -> None:
    encoder, batch = subject.encoder(), tokens(4, 4)
    order = torch.tensor([2, 0, 3, 1])
    before, after = encoder(batch).hidden, encoder(batch[order]).hidden
    insist_same(after, before[order], "a batch in another order")
    changed = torch.cat([batch[:1], SYMBOLS + 1 - batch[1:]])
    insist_same(encoder(changed).hidden[:1], before[:1], "a sequence among others")


@promise()
def packed_documents_are_encoded_as_they_would_be_alone(subject: Subject) -> None:
    documents = subject.first_taken(Documents(torch.tensor([[0, 0, 0, 1, 1, 1, 1]])))
    encoder, packed = subject.encoder(), tokens(1, 7)
    together = encoder(packed, mask=documents).hidden
    insist_same(together[:, :3], encoder(packed[:, :3]).hidden, "the first of two documents")
    insist_same(together[:, 3:], encoder(packed[:, 3:]).hidden, "the second of two documents")


@promise()
def a_sequence_of_pads_is_zero_and_adds_nothing_to_gradients(subject: Subject) -> None:
    encoder, real = subject.encoder(), tokens(1, 4)
    alone = gradients(encoder, encoder(real).hidden)
    out = encoder(torch.cat([torch.zeros_like(real), real]))
    insist(out.hidden[0].eq(0).all(), "its states are not 0")
    insist(out.readout[0].eq(0).all(), "its readout is not 0")
    together = gradients(encoder, out.hidden)
    insist(together.keys() == alone.keys(), "other parameters get gradients")
    for path, gradient in together.items():
        insist_same(gradient, alone[path], f"the gradient of {path} beside a sequence of pads")


@promise()
def the_order_of_calls_does_not_matter(subject: Subject) -> None:
    """Calls of several lengths, indices, masks and precisions: none leaves a trace."""
    late, mask = torch.arange(7).unsqueeze(0) + 5, subject.first_taken(Causal(), Full())
    calls: list[Callable[[Encoder], EncoderOutput]] = [
        lambda encoder: encoder(tokens(2, 7)),
        lambda encoder: encoder(tokens(2, 3)),
        lambda encoder: encoder(ragged(7)),
        lambda encoder: encoder(tokens(2, 12)),
        lambda encoder: encoder(tokens(2, 7), positions=late),
        lambda encoder: encoder(tokens(2, 7), mask=mask, positions=late),
    ]
    # Not the shared encoder: it has been called before.
    first, second = subject.unused(), subject.unused()
    forwards = [call(first).hidden for call in calls]
    low = deepcopy(second).bfloat16()(tokens(2, 7)).hidden
    insist(low.isfinite().all(), "a call in bfloat16 is not finite")
    backwards = [call(second).hidden for call in reversed(calls)][::-1]
    for number, (one, other) in enumerate(zip(forwards, backwards, strict=True)):
        insist_same(one, other, f"call {number} of six, made in the other order", 1e-12)


@promise()
def inputs_are_left_as_they_are(subject: Subject) -> None:
    encoder: Encoder = subject.encoder()
    ids = ragged()
    states = torch.randn(2, 5, encoder.dims.d_model, generator=torch.Generator().manual_seed(0))
    states = states.double()
    index = torch.arange(5).unsqueeze(0)
    given = [ids, states, index]
    kept = [one.clone() for one in given]
    encoder(ids)
    encoder(states, positions=index)
    for one, before in zip(given, kept, strict=True):
        insist(torch.equal(one, before), "an input is changed in place")
