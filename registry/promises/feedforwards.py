"""Feed-forward layers."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import torch
from torch import nn

from registry.options import options_of
from registry.promises.promise import Broken, insist, insist_same, promise
from registry.promises.subject import WIDTH, Subject, only_for, vectors


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


@promise()
def a_given_d_ff_is_the_width_of_its_map_into_the_stream(subject: Subject) -> None:
    """`to_model`, by which name initializers that scale by depth know it in every layer."""
    names = [name for name, _, _ in options_of(subject.part)]
    only_for("d_ff" in names, "it has no option d_ff")
    only_for(subject.options.get("match") != "parameters", "its width follows from a plain layer's")
    found = getattr(subject.with_options(d_ff=24).make(), "to_model", None)
    if not isinstance(found, nn.Linear):
        raise Broken(
            "call the linear map into the stream to_model: initializers look for that name"
        )
    insist(found.in_features == 24, f"d_ff = 24, but to_model takes {found.in_features} channels")
