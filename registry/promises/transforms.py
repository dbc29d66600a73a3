"""What torch does with whole models: capture, vmap, checkpointing."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Any

import torch
from torch import Tensor

from registry.problems import ConfigError
from registry.promises.promise import NotApplicable, insist, insist_same, promise
from registry.promises.subject import (
    WIDTH,
    Subject,
    gradients,
    moved,
    ragged,
    tokens,
    vectors,
)


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
        alone = slope(weights, inputs[number])
        for path, gradient in alone.items():
            insist_same(together[path][number], gradient, f"the gradient of {path} per sample")


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
    insist(found[0].keys() == found[1].keys(), "other parameters get gradients")
    for path, expected in found[0].items():
        insist_same(found[1][path], expected, f"{path} with checkpointing", 1e-12)


LENGTHS = (5, 8, 11, 16, 23)
BARE = {"position": "none", "feedforward": "none", "norm": "none", "n_layers": 1}
"""What stands around a part while it is captured: next to nothing, since all of it takes time."""

TOLD_OF_PADDING = ("norm", "mask", "attention", "readout")
"""Kinds whose parts are told which tokens are padding."""


@promise(dear=True)
def it_is_captured_whole_by_dynamo(subject: Subject) -> None:
    """In training, one layer, by `torch.compile(fullgraph=True, dynamic=True, backend="eager")`.

    Five lengths need two graphs at most, and what they answer is what the layer itself answers.
    """
    encoder = moved(subject.fresh(**_bare(subject), dropout=0.1)).train()
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    captured = torch.compile(encoder, backend=backend, fullgraph=True, dynamic=True)
    for length in LENGTHS:
        answers: list[Tensor] = []
        # The layer itself comes first: what fails there is told in its own words.
        for one in (encoder, captured):
            torch.manual_seed(length)
            answers.append(one(tokens(3, length)).readout)
        insist_same(answers[1], answers[0], f"length {length}", 1e-5)
    insist(len(graphs) <= 2, f"{len(LENGTHS)} lengths needed {len(graphs)} graphs")


def _bare(subject: Subject) -> dict[str, Any]:
    own = ("attention", "position") if subject.kind == "attention" else (subject.kind,)
    pad_id = 0 if subject.kind in TOLD_OF_PADDING else None
    return {**{key: value for key, value in BARE.items() if key not in own}, "pad_id": pad_id}
