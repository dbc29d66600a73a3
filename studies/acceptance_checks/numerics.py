"""Numerics: finite numbers, gradients everywhere, weights that are shares."""

import math
import re
from collections import defaultdict
from typing import Any

import torch

from registry.conformance.checks import NotApplicable, require
from studies.acceptance_checks.check import Layer, Passed, Subject, weights_of
from studies.scoring import batch_loss
from studies.training.loop import parameter_groups
from variants.masks import Dense, Padding

LAYER = Layer("numerics")

STEPS = 2
"""So many steps are taken first: a gain that starts at 0, as ReZero's, hides what is behind it."""


@LAYER.check(
    "a weight is nan already: look at the initializer",
    "a row of -inf alone goes through the softmax: 0 / 0",
    "a mask adds a number too large for the dtype",
)
def outputs_are_finite_at_every_length(subject: Subject) -> Passed:
    """From the shortest sequence to the longest."""
    lengths = sorted({subject.task.min_length, subject.task.min_length + 1, subject.length})
    for length in lengths:
        found = subject.logits(subject.batch(length=length).tokens)
        require(
            bool(found.isfinite().all()),
            f"{int((~found.isfinite()).sum())} of {found.numel()} logits are nan or infinite at "
            f"length {length}",
        )
    return Passed(f"at lengths {', '.join(map(str, lengths))}")


@LAYER.check(
    "initial weights of the head, or the embedding scale √d_model, are too large",
    "targets and classes are shifted against each other",
)
def the_first_loss_is_that_of_an_even_guess(subject: Subject) -> Passed:
    """Near ln C before any training: within a factor of 3, since initial states differ in size."""
    loss = batch_loss(subject.model, subject.batch(64), subject.work.device).item()
    even = math.log(subject.task.n_classes)
    require(math.isfinite(loss), f"the loss is {loss}")
    require(
        loss < 3 * even,
        f"the loss is {loss:.2f} nats; an even guess over the classes has {even:.2f}",
    )
    return Passed(f"{loss:.2f} nats, an even guess has {even:.2f}", {"first_loss": loss})


@LAYER.check(
    "a detach, a no_grad or an .item() cuts the graph before it",
    "the part is built and not called, or its output is thrown away",
    "the readout reads a place that this part does not reach",
)
def every_part_gets_a_gradient(subject: Subject) -> Passed:
    """Finite and not 0, in every sublayer, after a few steps."""
    model: Any = subject.build()
    optimizer = torch.optim.AdamW(parameter_groups(model.parameters(), 0.0), lr=1e-3)
    for _ in range(STEPS + 1):
        optimizer.step()
        optimizer.zero_grad()
        batch_loss(model, subject.batch(16), subject.work.device).backward()
    sizes: dict[str, float] = defaultdict(float)
    for name, one in model.named_parameters():
        if one.requires_grad:
            size = 0.0 if one.grad is None else one.grad.double().norm().item()
            sizes[_part(name)] += size
    lost = [name for name, size in sizes.items() if not math.isfinite(size)]
    require(not lost, f"gradients that are not finite: {', '.join(lost)}")
    silent = [name for name, size in sizes.items() if size == 0]
    require(not silent, f"no gradient reaches {', '.join(silent)}")
    return Passed(f"{len(sizes)} parts")


def _part(parameter: str) -> str:
    """blocks.0.attention.to_q.weight belongs to blocks.0.attention."""
    found = re.match(r"(?:.*?\.\d+\.\w+|[^.]+)", parameter)
    return found[0] if found else parameter


@LAYER.check(
    "dropout does not follow model.eval(): F.dropout without training=self.training",
    "positions are drawn from the global generator in evaluation",
)
def evaluation_says_the_same_twice(subject: Subject) -> Passed:
    """No dropout, no draw, nothing kept from the first time."""
    tokens = subject.batch().tokens
    first, second = subject.logits(tokens), subject.logits(tokens)
    off = (first - second).abs().max().item()
    require(torch.equal(first, second), f"two passes in evaluation differ by up to {off:.2g}")
    return Passed("to the bit")


@LAYER.check(
    "the softmax runs over queries instead of keys (dim=-2 for dim=-1)",
    "weights are masked after the softmax instead of before it",
    "dropout acts on the weights that are returned",
)
def attention_rows_sum_to_one(subject: Subject) -> Passed:
    """Over the keys, none below 0, and nothing on padding."""
    encoder, tokens = subject.encoder, subject.batch().tokens
    keep = torch.ones_like(tokens, dtype=torch.bool)
    keep[:, -2:] = False
    padded = weights_of(encoder, tokens, Padding(keep=keep))
    for layer, weights in enumerate(weights_of(encoder, tokens)):
        total = weights.sum(dim=-1)
        off = (total - 1).abs()[total > 0].max().item() if (total > 0).any() else 1.0
        require(off < 1e-4, f"rows of layer {layer} sum to 1 only within {off:.2g}")
        require(weights.min().item() >= 0, f"layer {layer} has weights below 0")
        on_padding = padded[layer][..., -2:].abs().max().item()
        require(on_padding == 0, f"layer {layer} lays up to {on_padding:.2g} on padded keys")
    return Passed("in every layer")


@LAYER.check(
    "a row of -inf alone goes through the softmax: 0 / 0",
    "-inf was replaced by a large negative number, so an empty row becomes an even one",
)
def a_query_that_may_see_nothing_gets_nothing(subject: Subject) -> Passed:
    """Weights 0 and finite states, instead of 0 / 0."""
    encoder, tokens = subject.encoder, subject.batch().tokens
    seq = tokens.shape[1]
    allowed = torch.ones(seq, seq, dtype=torch.bool)
    allowed[1] = False
    mask = Dense(allowed.to(tokens.device))
    position: Any = encoder.positions[0]
    try:
        encoder.attention.check(mask, position)
    except ValueError as reason:
        raise NotApplicable(str(reason)) from None
    with torch.no_grad():
        found = encoder(tokens, mask=mask)
    require(bool(found.hidden.isfinite().all()), "an empty row of the mask makes states nan")
    for layer, weights in enumerate(weights_of(encoder, tokens, mask)):
        most = weights[:, :, 1].abs().max().item()
        require(most == 0, f"layer {layer} gives an empty row weights up to {most:.2g}")
    return Passed("states finite, weights 0")
