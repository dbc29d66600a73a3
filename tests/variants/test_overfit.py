"""Each part learns a hundred examples of a task that it can express, and none that it cannot."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import registry
from registry import build_encoder
from registry.table import table_of
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


def both_neighbours(x: Tensor) -> Tensor:
    """The sum of the tokens beside each: a task of distance alone."""
    return (F.pad(x, (1, 0))[:, :-1] + F.pad(x, (0, 1))[:, 1:]) % SYMBOLS


def most_common(x: Tensor) -> Tensor:
    """The commonest symbol, the smallest of them where several are: one answer a sequence."""
    return F.one_hot(x - 1, SYMBOLS).sum(1).argmax(-1)


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


BASE = build().config
ALWAYS = {"relu", "swiglu", "rmsnorm", "post", "rezero", "torch_default", "explicit", "linear"}
"""What is tried in every run; other parts are slow."""

CHANGES: list[Any] = [{}]
for kind in ("feedforward", "norm", "norm_placement", "initializer", "attention"):
    CHANGES += [
        pytest.param({kind: name}, marks=() if name in ALWAYS else pytest.mark.slow)
        for name in table_of(kind)
        if name != getattr(BASE, kind).name
    ]

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.mark.parametrize(
    "changes", CHANGES, ids=lambda changes: str(changes) if changes else "base"
)
def test_every_part_learns_a_task_of_direction(changes: dict[str, str]) -> None:
    seen = losses(build(**changes), tokens(), left_neighbour(tokens()))
    assert seen[0] > 1
    assert seen[-1] < 0.05


@pytest.mark.parametrize("position", [name for name in registry.positions if name != "rope"])
def test_every_position_encoding_learns_what_it_can_see(position: str) -> None:
    part, x = registry.positions[position], tokens()
    if part.sees_direction:
        targets = left_neighbour(x)
    elif part.sees_order:
        targets = both_neighbours(x)
    else:
        targets = (most_common(x).unsqueeze(1) + x) % SYMBOLS
    assert losses(build(position=position), x, targets)[-1] < 0.05


@pytest.mark.parametrize("readout", [name for name in registry.readouts if name != "tokens"])
def test_every_readout_learns_one_answer_a_sequence(readout: str) -> None:
    assert losses(build(readout=readout), tokens(), most_common(tokens()))[-1] < 0.05


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
