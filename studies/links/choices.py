"""Which links of a query are cut: the true ones, the largest ones, or random ones as a control."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

Keys = Bool[Tensor, "row key"]
Choice = Literal["nothing", "true", "top", "random", "mass", "keep_true", "keep_top", "keep_random"]

BY_NUMBER = ("top", "random", "mass", "keep_top", "keep_random")
"""The choices that a number of links, a dose, makes larger."""


@dataclass(frozen=True)
class Rows:
    """Queries that are looked at, one a sequence, with their links.

    `weights` are the share of each key, averaged over the heads and layers that are cut; `allowed`
    are the keys that the mask lets each query see, `true` those that the answer needs. `count` is
    how many links a choice by number takes.
    """

    weights: Float[Tensor, "row key"]
    allowed: Keys
    true: Keys
    count: Int[Tensor, " row"]

    def mass(self, keys: Keys) -> Float[Tensor, " row"]:
        """The weight that lies on some keys."""
        return (self.weights * keys).sum(dim=-1)


def choose(choice: Choice, rows: Rows, generator: Generator) -> Keys:
    """The keys that are cut from each query.

    nothing: none. true: those that the answer needs. top: the `count` largest. random: `count`
    others. mass: others, in random order, up to the number whose weight is closest to that of the
    largest. keep_true, keep_top, keep_random: all but these.

    Others are keys that are neither needed nor among as many of the largest, so that a control
    never takes what it is the control of. Where there are too few of them, all are taken: the
    number and the weight that were reached are what the sum of the keys and `Rows.mass` say.
    """
    if choice.startswith("keep_"):
        other: Any = choice.removeprefix("keep_")
        return rows.allowed & ~choose(other, rows, generator)
    if choice == "nothing":
        return torch.zeros_like(rows.allowed)
    if choice == "true":
        return rows.true & rows.allowed
    top = first(rows.weights, rows.allowed, rows.count)
    return top if choice == "top" else _control(choice, rows, top, generator)


def _control(choice: Choice, rows: Rows, top: Keys, generator: Generator) -> Keys:
    """Random others, as many as the largest or of their weight."""
    largest = first(rows.weights, rows.allowed, rows.true.sum(dim=-1))
    others = rows.allowed & ~rows.true & ~largest
    noise = torch.rand(rows.weights.shape, generator=generator, dtype=torch.float64)
    noise = noise.to(rows.weights.device)
    if choice == "random":
        return first(noise, others, rows.count)
    order = noise.masked_fill(~others, -1.0).argsort(dim=-1, descending=True)
    weights = (rows.weights * others).gather(-1, order)
    missed = (weights.cumsum(dim=-1) - rearrange(rows.mass(top), "row -> row 1")).abs()
    # The last of equal minima: weights too small to change a sum are taken where none is enough.
    number = missed.shape[-1] - missed.flip(-1).argmin(dim=-1)
    return first(-order.argsort(dim=-1).double(), others, number)


def first(values: Float[Tensor, "row key"], among: Keys, count: Int[Tensor, " row"]) -> Keys:
    """The keys with the `count` largest values among some; all of those where they are fewer."""
    ranked = values.masked_fill(~among, float("-inf")).argsort(dim=-1, descending=True, stable=True)
    rank = ranked.argsort(dim=-1)
    return among & (rank < rearrange(count, "row -> row 1"))
