"""Weights: where they come from, who shares them, what is saved."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import random
from itertools import combinations
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from registry.build import build_encoder
from registry.conformance.checks import promise, require
from registry.conformance.subject import Subject, tokens


@promise()
def one_seed_gives_the_same_weights_whatever_came_before(subject: Subject) -> None:
    first = subject.fresh(seed=1).state_dict()
    torch.rand(3)
    random.random()
    again = subject.fresh(seed=1).state_dict()
    require(first.keys() == again.keys(), "the names of the weights differ")
    for path, weight in first.items():
        require(torch.equal(weight, again[path]), f"{path} differs between two builds of one seed")


@promise()
def another_seed_gives_other_weights(subject: Subject) -> None:
    first, other = subject.fresh(seed=1), subject.fresh(seed=2)
    for path, module in first.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            same = torch.equal(module.weight, dict(other.named_parameters())[f"{path}.weight"])
            spread = module.weight.std() if module.weight.numel() > 1 else torch.tensor(0.0)
            require(not same or spread == 0, f"{path} starts the same with every seed")


@promise()
def no_two_layers_share_or_equal_weights(subject: Subject) -> None:
    changes = {"position_per_layer": True} if subject.kind == "position" else {}
    encoder = subject.fresh(**changes)
    for stack in (encoder.blocks, encoder.positions):
        weights = [dict(layer.named_parameters()) for layer in stack]
        for one, other in combinations(weights, 2):
            for path in one.keys() & other.keys():
                first, second = one[path], other[path]
                require(first.data_ptr() != second.data_ptr(), f"two layers share {path}")
                drawn = first.ndim > 1 and first.std() > 0
                equal = drawn and torch.equal(first, second)
                require(not equal, f"two layers start with equal {path}")


@promise()
def weights_travel_to_a_new_encoder_of_any_length(subject: Subject) -> None:
    """A saved state fits whatever lengths either encoder has seen, and gives the same result."""
    old = subject.unused(seed=1)
    names = set(old.state_dict())
    expected = old(tokens(2, 7)).hidden
    old(tokens(2, 12))
    saved = {path: weight.clone() for path, weight in old.state_dict().items()}
    require(names == set(saved), "a call changes what is saved")
    new = subject.unused(seed=2)
    new(tokens(2, 3))
    try:
        new.load_state_dict(saved)
    except RuntimeError as error:
        require(False, f"a saved state does not fit: {' '.join(str(error).split())}")
    require(torch.equal(new(tokens(2, 7)).hidden, expected), "a loaded encoder answers differently")


@promise()
def only_what_training_changes_is_saved(subject: Subject) -> None:
    """What can be worked out again, such as a table of sines, is no part of a saved state."""
    encoder = subject.unused().train()
    parameters = dict(encoder.named_parameters())
    before = {path: weight.clone() for path, weight in encoder.state_dict().items()}
    encoder(tokens(3, 5))
    for path, weight in encoder.state_dict().items():
        fixed = path not in parameters and torch.equal(weight, before[path])
        require(not fixed, f"{path} is saved, although nothing ever changes it")


@promise()
def every_tensor_moves_with_the_model(subject: Subject) -> None:
    """A tensor that is neither parameter nor buffer stays behind when a model changes device."""
    encoder = subject.encoder()
    encoder(tokens(2, 5))
    for path, module in encoder.named_modules():
        for name, value in vars(module).items():
            if name not in ("_parameters", "_buffers", "_modules"):
                inside = f"{path}.{name}".lstrip(".")
                require(not _holds_tensor(value), f"{inside} holds a tensor that is no buffer")


def _holds_tensor(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list | tuple | set):
        return any(map(_holds_tensor, inner))
    return isinstance(value, Tensor)


@promise()
def without_biases_there_are_none(subject: Subject) -> None:
    """`bias: false` in the config leaves no bias in any linear map or norm."""
    for path, _ in subject.fresh(bias=False).named_parameters():
        require(path.rsplit(".", 1)[-1] != "bias", f"{path} is there although bias is false")


EXAMPLES, LENGTH, SYMBOLS = 100, 8, 6
STEPS, STEPS_OF_DRAWS = 200, 1000
"""Where positions are drawn anew at every step, what is learned is learned more slowly."""

SIZES = {"vocab_size": SYMBOLS + 1, "n_classes": SYMBOLS, "d_model": 32, "n_heads": 4}


def _commonest(x: Tensor) -> Tensor:
    return F.one_hot(x - 1, SYMBOLS).sum(1).argmax(-1)


def _targets(subject: Subject, x: Tensor) -> Tensor:
    """For each token an answer that the part can express."""
    position = subject.position
    if subject.needs_causal:  # the token to the left, which a causal mask allows
        return F.pad(x, (1, 0), value=1)[:, :-1] - 1
    if position.sees_direction:  # the token to the left, around the end
        return x.roll(1, dims=1) - 1
    if position.sees_order:  # the sum of both neighbours: distance alone
        return (F.pad(x, (1, 0))[:, :-1] + F.pad(x, (0, 1))[:, 1:]) % SYMBOLS
    return (_commonest(x).unsqueeze(1) + x) % SYMBOLS  # no order at all


@promise(dear=True)
def it_learns_what_it_can_express(subject: Subject) -> None:
    """A hundred sequences, by heart: a loss below 0.05 after 200 steps, 1,000 where it draws."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(1, SYMBOLS + 1, (EXAMPLES, LENGTH), generator=generator)
    encoder = build_encoder(subject.config(**SIZES), seed=0)
    one_answer = encoder(x).readout.ndim == 2
    targets = _commonest(x) if one_answer else _targets(subject, x)
    most = STEPS_OF_DRAWS if encoder.draws else STEPS
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-2, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=most)
    loss, steps = torch.tensor(1.0), 0
    while loss > 0.04 and steps < most:
        optimizer.zero_grad()
        loss = F.cross_entropy(encoder(x).logits.flatten(0, -2), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        steps += 1
    require(loss < 0.05, f"after {steps} steps the loss is {loss.item():.3g}")
