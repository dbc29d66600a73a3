"""Structure: shapes, heads, and that nothing is mixed that belongs apart."""

from typing import Any

import torch
from torch import Tensor

from studies.acceptance_checks.check import Check, NotApplicableError, Told, insist
from studies.acceptance_checks.subject import Subject
from variants.encoder import Encoder

NO_ENCODER = "it is not made of our parts, so its inside is not known"


def the_answers_have_one_score_for_each_class(subject: Subject) -> Told:
    """(batch, classes), or (batch, seq, classes) where every token is answered."""
    batch = subject.batch()
    wanted = (*batch.targets.shape, subject.task.n_classes)
    found = tuple(subject.logits(batch.tokens).shape)
    insist(found == wanted, f"logits of shape {wanted} are expected; got {found}")
    return Told(f"logits {found}")


def the_states_have_the_width_of_the_model(subject: Subject) -> Told:
    """(batch, seq, d_model), as they leave the last layer."""
    encoder, batch = ours(subject), subject.batch()
    wanted = (*batch.tokens.shape, encoder.dims.d_model)
    found = tuple(encoder(batch.tokens).hidden.shape)
    insist(found == wanted, f"states of shape {wanted} are expected; got {found}")
    return Told(f"states {found}")


def every_layer_shows_the_weights_of_its_heads(subject: Subject) -> Told:
    """One (batch, heads, query, key) a layer."""
    encoder, tokens = ours(subject), subject.batch().tokens
    weights = weights_of(encoder, tokens)
    batch, seq = tokens.shape
    wanted = [(batch, encoder.dims.n_heads, seq, seq)] * encoder.dims.n_layers
    found = [tuple(one.shape) for one in weights]
    insist(found == wanted, f"weights of shapes {wanted} are expected; got {found}")
    return Told(f"{len(found)} layers of {encoder.dims.n_heads} heads")


def each_head_owns_its_channels(subject: Subject) -> Told:
    """Queries of head h come from rows h·d_head … (h+1)·d_head - 1 of the projection alone."""
    encoder = ours(subject)
    tokens, d_head, heads = subject.batch().tokens, encoder.dims.d_head, encoder.dims.n_heads
    before = weights_of(encoder, tokens)[0]
    for head in range(heads):
        other = subject.changed()
        rows = slice(head * d_head, (head + 1) * d_head)
        with torch.no_grad():
            # Noise, since what a norm has centred does not see a constant.
            own = other.blocks[0].attention.to_q.weight[rows]
            own += torch.randn(own.shape, generator=torch.Generator().manual_seed(head)).to(own)
        moved = (weights_of(other, tokens)[0] - before).abs().amax(dim=(0, 2, 3))
        changed = [number for number in range(heads) if moved[number] > 1e-6]
        insist(
            changed == [head],
            f"other weights in the channels of head {head} change the attention of heads "
            f"{changed or 'none'}",
        )
    return Told(f"{heads} heads of width {d_head}")


def sequences_do_not_see_each_other(subject: Subject) -> Told:
    """An answer is the same whatever else is in the batch."""
    tokens = subject.batch(6).tokens
    together = subject.logits(tokens)
    alone = torch.cat([subject.logits(one) for one in tokens.split(1)])
    off = (together - alone).abs().max().item()
    insist(off < 1e-4, f"answers differ by up to {off:.2g} when a sequence comes alone")
    return Told(f"alone and together the same, within {off:.1g}")


def ours(subject: Subject) -> Encoder:
    """The encoder.

    Raises:
        NotApplicableError: If the model is another one.
    """
    if subject.encoder is None:
        raise NotApplicableError(NO_ENCODER)
    return subject.encoder


def weights_of(encoder: Any, tokens: Tensor) -> Any:
    """The attention weights of each layer.

    Raises:
        NotApplicableError: If the attention has none to show.
    """
    with torch.no_grad():
        try:
            return encoder(tokens, need_weights=True).weights
        except NotImplementedError as reason:
            raise NotApplicableError(str(reason)) from None


CHECKS = (
    Check(
        "structure",
        the_answers_have_one_score_for_each_class,
        (
            "the readout gives one vector a token where the task asks for one a sequence; a model "
            "that answers every token wants a task that asks so: --set task=shift",
            "the head has another number of classes than the task",
        ),
    ),
    Check(
        "structure",
        the_states_have_the_width_of_the_model,
        ("heads are not merged back: n_heads · d_head has to be projected to d_model",),
    ),
    Check(
        "structure",
        every_layer_shows_the_weights_of_its_heads,
        (
            "heads are summed or averaged before the weights are returned",
            "batch and heads are folded into one axis and not unfolded",
        ),
    ),
    Check(
        "structure",
        each_head_owns_its_channels,
        (
            "heads are split as (d_head heads) instead of (heads d_head)",
            "a reshape without a transpose mixes tokens and heads",
        ),
    ),
    Check(
        "structure",
        sequences_do_not_see_each_other,
        (
            "batch and sequence are taken for each other (batch_first)",
            "a norm takes its statistics over the batch in evaluation too",
        ),
    ),
)
