"""Initializers."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from registry.promises.promise import insist, promise
from registry.promises.subject import Subject

Fill = Callable[[Any, Tensor, torch.Generator], None]
FILLS: dict[str, tuple[tuple[int, ...], Fill]] = {
    "matrix": ((24, 16), lambda part, weight, source: part.matrix(weight, source)),
    "table": ((12, 16), lambda part, weight, source: part.table(weight, source)),
    "bias": ((24,), lambda part, weight, source: part.bias(weight, 16, source)),
}


def _filled(subject: Subject, what: str, seed: int) -> Tensor:
    shape, fill = FILLS[what]
    weight = torch.full(shape, math.nan)
    fill(subject.make(), weight, torch.Generator().manual_seed(seed))
    return weight


@promise()
def every_number_is_filled(subject: Subject) -> None:
    for what in FILLS:
        insist(_filled(subject, what, 0).isfinite().all(), f"{what} leaves numbers unfilled")


@promise()
def numbers_come_from_the_given_generator_alone(subject: Subject) -> None:
    before = torch.get_rng_state()
    for what in FILLS:
        first, again, other = (_filled(subject, what, seed) for seed in (1, 1, 2))
        insist(torch.equal(first, again), f"{what}: one generator gives two fillings")
        drawn = what != "bias" and first.std() > 0
        insist(not (drawn and torch.equal(first, other)), f"{what}: the generator is not used")
    insist(torch.equal(torch.get_rng_state(), before), "a global generator is used")
