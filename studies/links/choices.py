"""Which links of a query are cut: the true ones, the largest ones, or random ones as a control."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

Keys = Bool[Tensor, "row key"]
Choice = Literal["nothing", "true", "top", "random", "mass", "keep_true", "keep_top", "keep_random"]


@dataclass(frozen=True)
class Rows:
    """Queries that are looked at, one a sequence, with their links.

    Args:
        weights: The share of each key, averaged over the heads and layers that are cut.
        allowed: The keys that the mask lets each query see.
        true: The keys that the answer needs.
        count: How many links a choice by number takes.
    """

    weights: Float[Tensor, "row key"]
    allowed: Keys
    true: Keys
    count: Int[Tensor, " row"]

    def mass(self, keys: Keys) -> Float[Tensor, " row"]:
        """The weight that lies on some keys."""
        return (self.weights * keys).sum(dim=-1)


def choose(choice: Choice, rows: Rows, generator: torch.Generator) -> Keys:
    """The keys that are cut from each query.

    nothing: none. true: those that the answer needs. top: the `count` largest. random: `count`
    others. mass: others, in random order, up to the number whose weight is closest to that of the
    largest. keep_true, keep_top, keep_random: all but these.

    Others are keys that are neither needed nor among as many of the largest, so that a control
    never takes what it is the control of. Where there are too few of them, all are taken: the
    number and the weight that were reached are what the sum of the keys and `Rows.mass` say.
    """
    return CHOICES[choice](rows, generator)


def _nothing(rows: Rows, generator: torch.Generator) -> Keys:
    return torch.zeros_like(rows.allowed)


def _true(rows: Rows, generator: torch.Generator) -> Keys:
    return rows.true & rows.allowed


def _top(rows: Rows, generator: torch.Generator) -> Keys:
    return first(rows.weights, rows.allowed, rows.count)


def _others(rows: Rows, generator: torch.Generator) -> Keys:
    largest = first(rows.weights, rows.allowed, rows.true.sum(dim=-1))
    return rows.allowed & ~rows.true & ~largest


def _random(rows: Rows, generator: torch.Generator) -> Keys:
    return first(_noise(rows, generator), _others(rows, generator), rows.count)


def _mass(rows: Rows, generator: torch.Generator) -> Keys:
    others, wanted = _others(rows, generator), rows.mass(_top(rows, generator))
    order = _noise(rows, generator).masked_fill(~others, -1.0).argsort(dim=-1, descending=True)
    weights = (rows.weights * others).gather(-1, order)
    missed = (weights.cumsum(dim=-1) - rearrange(wanted, "row -> row 1")).abs()
    # The last of equal minima: weights too small to change a sum are taken where none is enough.
    number = missed.shape[-1] - missed.flip(-1).argmin(dim=-1)
    return first(_noise_of(order), others, number)


def _keep(choice: Callable[[Rows, torch.Generator], Keys]) -> Callable[..., Keys]:
    return lambda rows, generator: rows.allowed & ~choice(rows, generator)


CHOICES: Mapping[Choice, Callable[[Rows, torch.Generator], Keys]] = {
    "nothing": _nothing,
    "true": _true,
    "top": _top,
    "random": _random,
    "mass": _mass,
    "keep_true": _keep(_true),
    "keep_top": _keep(_top),
    "keep_random": _keep(_random),
}
assert tuple(CHOICES) == get_args(Choice)

BY_NUMBER = ("top", "random", "mass", "keep_top", "keep_random")
"""The choices that a number of links, a dose, makes larger."""


def first(values: Float[Tensor, "row key"], among: Keys, count: Int[Tensor, " row"]) -> Keys:
    """The keys with the `count` largest values among some; all of those where they are fewer."""
    ranked = values.masked_fill(~among, float("-inf")).argsort(dim=-1, descending=True, stable=True)
    rank = ranked.argsort(dim=-1)
    return among & (rank < rearrange(count, "row -> row 1"))


def _noise(rows: Rows, generator: torch.Generator) -> Float[Tensor, "row key"]:
    shape = rows.weights.shape
    return torch.rand(shape, generator=generator, dtype=torch.float64).to(rows.weights.device)


def _noise_of(order: Int[Tensor, "row key"]) -> Float[Tensor, "row key"]:
    """Values that fall along an order."""
    return -order.argsort(dim=-1).double()
