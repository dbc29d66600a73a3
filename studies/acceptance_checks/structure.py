"""Structure: shapes, heads, and that nothing is mixed that belongs apart."""

import copy
from typing import Any

import torch

from registry.conformance.checks import require
from studies.acceptance_checks.check import Layer, Passed, Subject, weights_of

LAYER = Layer("structure")


@LAYER.check(
    "the readout gives one vector a token where the task asks for one a sequence; a model "
    "that answers every token wants a task that asks so: --set task=shift",
    "the head has another number of classes than the task",
)
def the_answers_have_one_score_for_each_class(subject: Subject) -> Passed:
    """(batch, classes), or (batch, seq, classes) where every token is answered."""
    batch = subject.batch()
    wanted = (*batch.targets.shape, subject.task.n_classes)
    found = tuple(subject.logits(batch.tokens).shape)
    require(found == wanted, f"logits of shape {wanted} are expected; got {found}")
    return Passed(f"logits {found}")


@LAYER.check("heads are not merged back: n_heads · d_head has to be projected to d_model")
def the_states_have_the_width_of_the_model(subject: Subject) -> Passed:
    """(batch, seq, d_model), as they leave the last layer."""
    encoder, batch = subject.encoder, subject.batch()
    wanted = (*batch.tokens.shape, encoder.dims.d_model)
    found = tuple(encoder(batch.tokens).hidden.shape)
    require(found == wanted, f"states of shape {wanted} are expected; got {found}")
    return Passed(f"states {found}")


@LAYER.check(
    "heads are summed or averaged before the weights are returned",
    "batch and heads are folded into one axis and not unfolded",
)
def every_layer_shows_the_weights_of_its_heads(subject: Subject) -> Passed:
    """One (batch, heads, query, key) a layer."""
    encoder, tokens = subject.encoder, subject.batch().tokens
    weights = weights_of(encoder, tokens)
    batch, seq = tokens.shape
    wanted = [(batch, encoder.dims.n_heads, seq, seq)] * encoder.dims.n_layers
    found = [tuple(one.shape) for one in weights]
    require(found == wanted, f"weights of shapes {wanted} are expected; got {found}")
    return Passed(f"{len(found)} layers of {encoder.dims.n_heads} heads")


@LAYER.check(
    "heads are split as (d_head heads) instead of (heads d_head)",
    "a reshape without a transpose mixes tokens and heads",
)
def each_head_owns_its_channels(subject: Subject) -> Passed:
    """Queries of head h come from rows h·d_head … (h+1)·d_head - 1 of the projection alone."""
    encoder = subject.encoder
    tokens, d_head, heads = subject.batch().tokens, encoder.dims.d_head, encoder.dims.n_heads
    before = weights_of(encoder, tokens)[0]
    for head in range(heads):
        other: Any = copy.deepcopy(encoder)
        rows = slice(head * d_head, (head + 1) * d_head)
        with torch.no_grad():
            # Noise, since what a norm has centred does not see a constant.
            own = other.blocks[0].attention.to_q.weight[rows]
            own += torch.randn(own.shape, generator=torch.Generator().manual_seed(head)).to(own)
        moved = (weights_of(other, tokens)[0] - before).abs().amax(dim=(0, 2, 3))
        changed = [number for number in range(heads) if moved[number] > 1e-6]
        require(
            changed == [head],
            f"other weights in the channels of head {head} change the attention of heads "
            f"{changed or 'none'}",
        )
    return Passed(f"{heads} heads of width {d_head}")


@LAYER.check(
    "batch and sequence are taken for each other (batch_first)",
    "a norm takes its statistics over the batch in evaluation too",
)
def sequences_do_not_see_each_other(subject: Subject) -> Passed:
    """An answer is the same whatever else is in the batch."""
    tokens = subject.batch(6).tokens
    together = subject.logits(tokens)
    alone = torch.cat([subject.logits(one) for one in tokens.split(1)])
    off = (together - alone).abs().max().item()
    require(off < 1e-4, f"answers differ by up to {off:.2g} when a sequence comes alone")
    return Passed(f"alone and together the same, within {off:.1g}")
