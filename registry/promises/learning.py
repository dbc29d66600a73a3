"""A part learns by heart what it can express."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import torch
import torch.nn.functional as F
from torch import Tensor

from registry.builder import build_encoder
from registry.promises.promise import insist, promise
from registry.promises.subject import Subject

EXAMPLES, LENGTH, SYMBOLS = 100, 8, 6
STEPS, STEPS_OF_DRAWS = 200, 1000
"""Where positions are drawn anew at every step, what is learned is learned more slowly."""

SIZES = {"vocab_size": SYMBOLS + 1, "n_classes": SYMBOLS, "d_model": 32, "n_heads": 4}


def _left_neighbour(x: Tensor) -> Tensor:
    """What stands to the left of each token, around the end: a task of direction."""
    return x.roll(1, dims=1) - 1


def _both_neighbours(x: Tensor) -> Tensor:
    """The sum of the tokens beside each: a task of distance alone."""
    return (F.pad(x, (1, 0))[:, :-1] + F.pad(x, (0, 1))[:, 1:]) % SYMBOLS


def _commonest_and_own(x: Tensor) -> Tensor:
    """The sum of each token and the commonest one: a task without order."""
    return (_commonest(x).unsqueeze(1) + x) % SYMBOLS


def _commonest(x: Tensor) -> Tensor:
    return F.one_hot(x - 1, SYMBOLS).sum(1).argmax(-1)


def _left_or_nothing(x: Tensor) -> Tensor:
    """What stands to the left of each token: a task that a causal mask allows."""
    return F.pad(x, (1, 0), value=1)[:, :-1] - 1


@promise(dear=True)
def it_learns_what_it_can_express(subject: Subject) -> None:
    """A hundred sequences, by heart: a loss below 0.05 after 200 steps, 1,000 where it draws."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(1, SYMBOLS + 1, (EXAMPLES, LENGTH), generator=generator)
    encoder = build_encoder(subject.config(**SIZES), seed=0)
    one_answer = encoder(x).readout.ndim == 2
    targets = _commonest(x) if one_answer else _task_for(subject)(x)
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
    insist(loss < 0.05, f"after {steps} steps the loss is {loss.item():.3g}")


def _task_for(subject: Subject):
    position = subject.position
    if subject.needs_causal():
        return _left_or_nothing
    if position.sees_direction:
        return _left_neighbour
    return _both_neighbours if position.sees_order else _commonest_and_own
