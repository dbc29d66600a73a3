"""Feed-forward layers."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import torch

from registry.promises.promise import insist, insist_same, promise
from registry.promises.subject import WIDTH, Subject, vectors


@promise()
def tokens_do_not_see_one_another(subject: Subject) -> None:
    """Each token by itself, in any number of leading axes, gets what it gets among others."""
    layer, x = subject.moved(), vectors(2, 5, WIDTH)
    together = layer(x)
    for token in range(5):
        for sample in range(2):
            alone = layer(x[sample, token])
            insist_same(alone, together[sample, token], f"token {token} by itself")


@promise()
def its_input_is_left_as_it_is(subject: Subject) -> None:
    layer, x = subject.moved(), vectors(2, 5, WIDTH)
    before = x.clone()
    layer(x)
    insist(torch.equal(x, before), "its input is changed in place")
