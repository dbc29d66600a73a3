"""What may not be seen has no influence, in either direction."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import torch
from torch import Tensor

from registry.promises.promise import Broken, insist, insist_same, promise
from registry.promises.subject import SYMBOLS, WIDTH, Subject, gradients, tokens, vectors
from variants.masks import Causal, Dense, Documents, Full, Mask, Padding, Window
from variants.masks.testing import assert_no_leak


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
        insist_same(hidden[:, :t], expected[:, :t], f"states before a change at {t}", 1e-13)
        moved = (hidden[:, t:] - expected[:, t:]).abs().max()
        insist(moved > 1e-6, f"tokens from {t} on were changed, and their own states did not move")
    _refuse_gradients_from_the_future(encoder)


def _refuse_gradients_from_the_future(encoder: torch.nn.Module) -> None:
    inputs = vectors(2, 8, WIDTH).requires_grad_()
    states: Tensor = encoder(inputs).hidden
    (gradient,) = torch.autograd.grad((states[:, :4] * vectors(4, WIDTH, seed=1)).sum(), inputs)
    insist(gradient[:, 4:].eq(0).all(), "a gradient flows from earlier states to later tokens")
    insist(gradient[:, :4].abs().amax(dim=-1).gt(0).all(), "no gradient flows to a token's own")


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
        insist(out.hidden.isfinite().all(), f"{name}: a state is not finite")
        for path, gradient in gradients(encoder, out.hidden).items():
            insist(gradient.isfinite().all(), f"{name}: the gradient of {path} is not finite")
