"""Shapes, precisions, modes and gradients."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from registry.conformance.checks import (
    Broken,
    NotApplicable,
    left_alone,
    nothing_drawn,
    promise,
    relative_error,
    require,
    require_same,
    require_same_gradients,
)
from registry.conformance.subject import (
    SYMBOLS,
    WIDTH,
    Subject,
    answers,
    gradients,
    in_dtype,
    moved,
    ragged,
    slopes,
    stay_in_place,
    tokens,
    vectors,
)
from registry.errors import ConfigError
from variants import Encoder, EncoderOutput
from variants.masks import (
    Causal,
    Dense,
    Documents,
    Full,
    GlobalTokens,
    Mask,
    Padding,
    Prefix,
    RandomBlocks,
    Window,
)
from variants.masks.testing import assert_no_leak

DTYPES = (torch.float64, torch.float32, torch.bfloat16)


@promise()
def shapes_and_dtypes_are_kept(subject: Subject) -> None:
    for dtype in DTYPES:
        encoder = in_dtype(subject.encoder(), dtype)
        for given in (tokens(2, 1), vectors(2, 7, WIDTH).to(dtype), tokens(0, 4)):
            out = encoder(given)
            shape, found = (*given.shape[:2], WIDTH), tuple(out.hidden.shape)
            what = f"{dtype}, batch {given.shape[0]}, length {given.shape[1]}"
            require(found == shape, f"{what}: states have shape {found}, not {shape}")
            require(out.hidden.dtype == dtype, f"{what}: states are {out.hidden.dtype}")
            require(out.hidden.isfinite().all(), f"{what}: a state is not finite")
            require(out.readout.dtype == dtype, f"{what}: the readout is {out.readout.dtype}")


@promise()
def gradients_are_finite_and_reach_every_parameter(subject: Subject) -> None:
    encoder = subject.unused().train()
    found = gradients(encoder, encoder(tokens(3, 9)).readout)
    for path, parameter in encoder.named_parameters():
        if not parameter.requires_grad:
            continue
        require(path in found, f"{path} has no part in the result")
        require(found[path].isfinite().all(), f"the gradient of {path} is not finite")
        # What is added to every key alike leaves all weights as they are.
        free = path.endswith("to_k.bias")
        require(free or found[path].any(), f"the gradient of {path} is 0 everywhere")


@promise()
def training_without_dropout_equals_evaluation(subject: Subject) -> None:
    """With gradients and without."""
    encoder, results = subject.unused(), list[Tensor]()
    for training in (False, True):
        for recorded in (True, False):
            with torch.set_grad_enabled(recorded):
                results.append(encoder.train(training)(ragged()).hidden.detach())
    for other in results[1:]:
        require_same(other, results[0], "training against evaluation")


@promise()
def evaluation_is_deterministic(subject: Subject) -> None:
    """Dropout is off, random places are the same each time, torch's generator is left alone."""
    encoder = moved(subject.fresh(dropout=0.5)).double().eval()
    with nothing_drawn("evaluation draws from torch's global generator"):
        first, second = encoder(ragged()).hidden, encoder(ragged()).hidden
        same = torch.equal(first, second)
        require(same, "asked twice, an encoder in evaluation answers differently")
    stay_in_place(encoder)
    require_same(encoder(ragged()).hidden, subject.encoder()(ragged()).hidden, "dropout of 0.5")


@promise()
def the_result_does_not_depend_on_the_precision(subject: Subject) -> None:
    encoder = subject.encoder()
    exact = encoder(ragged()).hidden
    for dtype, allowed in ((torch.float32, 1e-5), (torch.bfloat16, 3e-2)):
        error = relative_error(in_dtype(encoder, dtype)(ragged()).hidden, exact)
        require(
            error < allowed, f"{dtype} is off by {error:.2g} of the states (allowed: {allowed})"
        )


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
        error = relative_error(hidden, exact)
        where = "" if index is None else " at indices around 1000"
        require(error < 3e-2, f"the states move by {error:.2g} of their size{where}")


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
        require_same(out.hidden[:1, real], expected.hidden, f"states {where}")
        readout = out.readout[:1, real] if out.readout.ndim == 3 else out.readout[:1]
        require_same(readout, expected.readout, f"readout {where}")
        pads = torch.cat([out.hidden[0, :left], out.hidden[0, left + 5 :]])
        require(pads.eq(0).all(), f"states at pads are not 0 {where}")


@promise()
def samples_of_a_batch_know_nothing_of_one_another(subject: Subject) -> None:
    encoder, batch = subject.encoder(), tokens(4, 4)
    order = torch.tensor([2, 0, 3, 1])
    before, after = encoder(batch).hidden, encoder(batch[order]).hidden
    require_same(after, before[order], "a batch in another order")
    changed = torch.cat([batch[:1], SYMBOLS + 1 - batch[1:]])
    require_same(encoder(changed).hidden[:1], before[:1], "a sequence among others")


PACKED = (
    Full(),
    Causal(),
    Causal() | Prefix(2),
    Window(radius=1) | GlobalTokens(1) | RandomBlocks(1, count=1),
)
"""The masks beside which documents are packed; all but the first two count from their text."""


@promise()
def packed_documents_are_encoded_as_they_would_be_alone(subject: Subject) -> None:
    documents = subject.first_taken(Documents(torch.tensor([[0, 0, 0, 1, 1, 1, 1]])))
    encoder, packed = subject.encoder(), tokens(1, 7)
    for mask in PACKED:
        if not subject.takes(mask & documents):
            continue
        together = encoder(packed, mask=mask & documents).hidden
        for place, part in (("first", slice(3)), ("second", slice(3, 7))):
            alone = encoder(packed[:, part], mask=mask).hidden
            told = f"the {place} of two documents under {mask!r}"
            require_same(together[:, part], alone, told)


@promise()
def a_sequence_of_pads_is_zero_and_adds_nothing_to_gradients(subject: Subject) -> None:
    encoder, real = subject.encoder(), tokens(1, 4)
    alone = gradients(encoder, encoder(real).hidden)
    out = encoder(torch.cat([torch.zeros_like(real), real]))
    require(out.hidden[0].eq(0).all(), "its states are not 0")
    require(out.readout[0].eq(0).all(), "its readout is not 0")
    together = gradients(encoder, out.hidden)
    require_same_gradients(together, alone, "the gradient of {} beside a sequence of pads")


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
    require(low.isfinite().all(), "a call in bfloat16 is not finite")
    backwards = [call(second).hidden for call in reversed(calls)][::-1]
    for number, (one, other) in enumerate(zip(forwards, backwards, strict=True)):
        require_same(one, other, f"call {number} of six, made in the other order", 1e-12)


@promise()
def inputs_are_left_as_they_are(subject: Subject) -> None:
    encoder: Encoder = subject.encoder()
    ids, states, index = ragged(), vectors(2, 5, WIDTH), torch.arange(5).unsqueeze(0)
    with left_alone(ids, states, index):
        encoder(ids)
        encoder(states, positions=index)


@promise(once=True)
def masked_keys_cannot_influence(subject: Subject) -> None:
    """Found by replacing each token, and by the gradient of each output."""
    mask = subject.first_taken(Window(left=1, right=0), Causal())
    try:
        assert_no_leak(subject.encoder(n_layers=1), mask, length=4)
    except AssertionError as error:
        raise Broken(str(error).split("\n")[0]) from error


@promise()
def causal_configs_never_see_the_future(subject: Subject) -> None:
    """Found by changing all tokens from one on, and by the gradient of the tokens before."""
    subject.first_taken(Causal())
    encoder, batch = subject.encoder(mask="causal"), tokens(2, 8)
    expected = encoder(batch).hidden
    for t in (1, 3, 7):
        changed = torch.cat([batch[:, :t], SYMBOLS + 1 - batch[:, t:]], dim=1)
        hidden = encoder(changed).hidden
        require_same(hidden[:, :t], expected[:, :t], f"states before a change at {t}", 1e-13)
        moved = (hidden[:, t:] - expected[:, t:]).abs().max()
        require(moved > 1e-6, f"tokens from {t} on were changed, and their own states did not move")
    inputs = vectors(2, 8, WIDTH).requires_grad_()
    states: Tensor = encoder(inputs).hidden
    (gradient,) = slopes(states[:, :4], inputs)
    require(gradient[:, 4:].eq(0).all(), "a gradient flows from earlier states to later tokens")
    require(gradient[:, :4].abs().amax(dim=-1).gt(0).all(), "no gradient flows to a token's own")


EMPTY: dict[str, Mask] = {
    "a mask that allows nothing": ~Full(),
    "a causal mask with left padding": Causal()
    & Padding(keep=torch.tensor([[False, False, True, True], [True] * 4])),
    "a mask with an empty row": Dense(
        torch.tensor([[1, 1, 0, 0], [0] * 4, [1] * 4, [0, 0, 0, 1]]) > 0
    ),
    "documents whose tokens see none near": Documents(torch.tensor([[0, 0, 1, 1]]))
    & ~Window(radius=1),
}


@promise()
def queries_that_may_attend_to_nothing_leave_everything_finite(subject: Subject) -> None:
    """States and the gradients of all parameters, in training."""
    encoder = subject.unused()
    subject.first_taken(*EMPTY.values())
    for name, mask in EMPTY.items():
        if not subject.takes(mask):
            continue
        out = encoder.train()(tokens(2, 4), mask=mask)
        require(out.hidden.isfinite().all(), f"{name}: a state is not finite")
        for path, gradient in gradients(encoder, out.hidden).items():
            require(gradient.isfinite().all(), f"{name}: the gradient of {path} is not finite")


@promise(once=True)
def it_works_under_vmap_with_explicit_attention(subject: Subject) -> None:
    """Gradients per sample, by `torch.func.vmap` over `torch.func.grad`, equal a loop's."""
    encoder = subject.encoder(pad_id=None, attention="explicit")
    inputs = vectors(3, 5, WIDTH)
    weights = {path: one.detach() for path, one in encoder.named_parameters()}

    def loss(weights: dict[str, Tensor], sample: Tensor) -> Tensor:
        given = sample.unsqueeze(0)
        out = torch.func.functional_call(encoder, weights, (given,)).readout
        return (out * vectors(*out.shape[1:], seed=5)).sum()

    slope = torch.func.grad(loss)
    together = torch.func.vmap(slope, in_dims=(None, 0), randomness="same")(weights, inputs)
    for number in range(3):
        mine = {path: gradient[number] for path, gradient in together.items()}
        require_same_gradients(
            mine, slope(weights, inputs[number]), "the gradient of {} per sample"
        )


@promise(once=True)
def gradient_checkpointing_changes_nothing(subject: Subject) -> None:
    """Blocks that are run again in the backward pass, with dropout, give the same gradients."""
    try:
        saving = subject.fresh(dropout=0.25, gradient_checkpointing=True)
    except ConfigError as error:
        raise NotApplicable(f"it is refused: {error}") from None
    plain = subject.fresh(dropout=0.25)
    found: list[dict[str, Tensor]] = []
    for encoder in (moved(one).double().train() for one in (plain, saving)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            out = encoder(ragged(), generator=torch.Generator().manual_seed(3))
            found.append({"states": out.hidden, **gradients(encoder, out.hidden)})
    require_same_gradients(found[1], found[0], "{} with checkpointing", 1e-12)


LENGTHS = (5, 8, 11, 16, 23)
BARE = {"position": "none", "feedforward": "none", "norm": "none", "n_layers": 1}
"""What stands around a part while it is captured: next to nothing, since all of it takes time."""

KNOW_PADDING = ("norm", "mask", "attention", "readout")
"""Kinds whose parts know which tokens are padding."""


@promise(dear=True)
def it_is_captured_whole_by_dynamo(subject: Subject) -> None:
    """In training, one layer, by `torch.compile(fullgraph=True, dynamic=True, backend="eager")`.

    Five lengths need two graphs at most, and what they answer is what the layer itself answers.
    """
    own = ("attention", "position") if subject.kind == "attention" else (subject.kind,)
    around: dict[str, Any] = {key: value for key, value in BARE.items() if key not in own}
    pad_id = 0 if subject.kind in KNOW_PADDING else None
    encoder = moved(subject.fresh(**around, pad_id=pad_id, dropout=0.1)).train()
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    captured = torch.compile(encoder, backend=backend, fullgraph=True, dynamic=True)
    for length in LENGTHS:
        # The layer itself comes first: what fails there is reported in its own words.
        torch.manual_seed(length)
        expected = encoder(tokens(3, length)).readout
        torch.manual_seed(length)
        require_same(captured(tokens(3, length)).readout, expected, f"length {length}", 1e-5)
    require(len(graphs) <= 2, f"{len(LENGTHS)} lengths needed {len(graphs)} graphs")
