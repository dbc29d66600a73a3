"""An encoder learns a hundred examples of a task that it can express, and none that it cannot.

That every part learns what it can is a promise, tried in tests/test_conformance.
"""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import registry
from registry import build_encoder
from variants import Encoder

EXAMPLES, LENGTH, SYMBOLS = 100, 8, 6
SMALL = {"vocab_size": SYMBOLS + 1, "n_classes": SYMBOLS, "d_model": 32, "n_heads": 4}
SMALL |= {"n_layers": 2, "position": "rope", "pad_id": 0}


def tokens() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(1, SYMBOLS + 1, (EXAMPLES, LENGTH), generator=generator)


def left_neighbour(x: Tensor) -> Tensor:
    """What stands to the left of each token, around the end: a task of direction."""
    return x.roll(1, dims=1) - 1


def losses(encoder: Encoder, x: Tensor, targets: Tensor, steps: int = 200) -> list[float]:
    """The loss of each step of training, which stops once it is low."""
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-2, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    seen: list[float] = []
    while len(seen) < steps and (not seen or seen[-1] > 0.04):
        optimizer.zero_grad()
        logits = encoder(x).logits
        assert logits is not None
        loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        seen.append(loss.item())
    return seen


def build(**changes: Any) -> Encoder:
    return build_encoder({**SMALL, **changes}, seed=0)


pytestmark = pytest.mark.usefixtures("unchecked")


def test_an_encoder_learns_a_task_of_direction() -> None:
    seen = losses(build(), tokens(), left_neighbour(tokens()))
    assert seen[0] > 1
    assert seen[-1] < 0.05


def rises() -> tuple[Tensor, Tensor]:
    """Is the first token smaller than the last? Each sequence is there with its reverse."""
    x = tokens()
    x = x[x[:, 0] != x[:, -1]]
    x = torch.cat([x, x.flip(1)])
    return x, (x[:, 0] < x[:, -1]).long()


BLIND = [name for name in registry.positions if not registry.positions[name].sees_direction]


@pytest.mark.parametrize("position", BLIND)
def test_what_sees_no_direction_never_beats_a_coin_on_a_question_of_direction(
    position: str,
) -> None:
    # A sequence and its reverse get one answer, which is right for one of the two at most.
    encoder = build(position=position, readout="mean", n_classes=2)
    assert min(losses(encoder, *rises(), steps=40)) > math.log(2) - 1e-5


def test_what_sees_direction_learns_a_question_of_direction() -> None:
    assert losses(build(readout="mean", n_classes=2), *rises())[-1] < 0.05
