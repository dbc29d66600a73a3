"""Attention backends against the formula, written out here once more."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
from einops import einsum, rearrange
from torch import Tensor

from registry.choices import own_numbers
from registry.conformance.checks import (
    NotApplicable,
    left_alone,
    nothing_drawn,
    only_for,
    promise,
    relative_error,
    require,
    require_same,
)
from registry.conformance.subject import DIMS, HEADS, Subject, slopes, vectors
from variants.masks import Causal, Dense, Full, Mask, Padding, Sizes, Window
from variants.positions import Position

MASKS: dict[str, Mask] = {
    "full": Full(),
    "causal": Causal(),
    "window": Window(left=1, right=2),
    "padding": Padding(lengths=[3, 6]),
    "a mask of each head": Dense(torch.rand(1, HEADS, 6, 6, generator=torch.Generator()) > 0.5),
    "an empty row": Dense(torch.tensor([[1] * 6, [0] * 6, *[[1, 0] * 3] * 4]) > 0),
}
SIZES = Sizes(2, HEADS, 6, 6)
NO_KEYS = (
    MASKS["an empty row"],
    Causal() & Padding(keep=torch.tensor([[0, 1, 1, 1, 1, 1]] * 2) > 0),
)
"""Masks under which a query has no keys: its second in the first, its first in the other."""

PAIRS = "batch heads query d_head, batch heads key d_head -> batch heads query key"
INDEX = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 4, 7, 8, 30]])


class _Biased(Position):
    """A bias that tells heads, directions and distances apart."""

    def bias(self, q_index: Tensor, k_index: Tensor) -> Tensor:
        query = rearrange(q_index, "batch query -> batch 1 query 1").double()
        key = rearrange(k_index, "batch key -> batch 1 1 key").double()
        head = rearrange(torch.arange(HEADS, dtype=torch.float64), "head -> 1 head 1 1")
        return (0.3 + head) * (query - 2 * key).sin()


class _Contextual(Position):
    def scores(self, q: Tensor, k: Tensor, q_index: Tensor, k_index: Tensor) -> Tensor:
        turned = k * rearrange(k_index, "batch key -> batch 1 key 1").cos()
        return einsum(q.tanh(), turned, PAIRS)


POSITIONS: dict[str, Callable[[], Position]] = {
    "no position": lambda: Position(DIMS),
    "a bias": lambda: _Biased(DIMS),
    "scores by content": lambda: _Contextual(DIMS),
}


def formula(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor, position: Position
) -> tuple[Tensor, Tensor]:
    """softmax(q·k/√d_head + bias + scores) v over the allowed keys; 0 where there are none."""
    scores = einsum(q, k, PAIRS) / q.shape[-1] ** 0.5
    for added in (position.bias(INDEX, INDEX), position.scores(q, k, INDEX, INDEX)):
        scores = scores if added is None else scores + added
    shares = scores.exp() * allowed
    weights = shares / shares.sum(-1, keepdim=True).clamp(min=1e-300)
    mixing = "batch heads query key, batch heads key d_head -> batch heads query d_head"
    return einsum(weights, v, mixing), weights


def _heads() -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = (vectors(2, HEADS, 6, 8, seed=seed).requires_grad_() for seed in range(3))
    return q, k, v


def _prepared(backend: Any, mask: Mask, position: Position | None = None) -> Any:
    return backend.prepare(mask, position or Position(DIMS), INDEX, INDEX, SIZES)


def _cells(mask: Mask) -> Tensor:
    return mask.dense(2, HEADS, 6, 6).expand(2, HEADS, 6, 6)


def _only_for_softmax(subject: Subject) -> None:
    only_for(subject.part.softmax, "it declares that it is no softmax attention")


@promise()
def outputs_and_gradients_are_those_of_the_formula(subject: Subject) -> None:
    """For every kind of mask and position, in float64."""
    _only_for_softmax(subject)
    backend = subject.moved()
    for (place, make), (name, mask) in product(POSITIONS.items(), MASKS.items()):
        where, position = f"{name}, {place}", make()
        heads = _heads()
        found = backend(*heads, _prepared(backend, mask, position))
        expected, _ = formula(*heads, _cells(mask), position)
        require_same(found, expected, f"outputs with {where}")
        pairs = zip(slopes(found, *heads), slopes(expected, *heads), strict=True)
        for letter, (slope, wanted) in zip("qkv", pairs, strict=True):
            require_same(slope, wanted, f"gradient of {letter} with {where}")


@promise()
def a_masked_key_never_wins_however_low_the_others_score(subject: Subject) -> None:
    """The only key that a query may see scores minus a million, and still gets all its weight."""
    _only_for_softmax(subject)
    backend = subject.moved()
    q, k, v = (heads.detach().clone() for heads in _heads())
    k[:, :, 0] = -1e6 * q[:, :, 0]
    found = backend(q, k, v, _prepared(backend, Causal()))
    require_same(found[:, :, 0], v[:, :, 0], "the first query under a causal mask")


@promise()
def a_query_without_keys_gets_zero_and_gives_zero_gradient(subject: Subject) -> None:
    mask = subject.first_taken(*NO_KEYS)
    backend, row = subject.moved(), 1 if mask is NO_KEYS[0] else 0
    q, k, v = _heads()
    out = backend(q, k, v, _prepared(backend, mask))
    require(out[:, :, row].eq(0).all(), "its output is not 0")
    (slope,) = slopes(out, q)
    require(slope.isfinite().all(), "a gradient is not finite")
    require(slope[:, :, row].eq(0).all(), "its gradient is not 0")


@promise()
def weights_are_those_of_the_formula_where_they_can_be_asked_for(subject: Subject) -> None:
    """Each row sums to 1 over the keys, not over the queries; masked keys have none."""
    _only_for_softmax(subject)
    heads = _heads()
    for name, mask, _, weights in _shown(subject, heads):
        _, expected = formula(*heads, _cells(mask), Position(DIMS))
        require_same(weights, expected, f"weights with {name}")


@promise()
def asking_for_weights_changes_no_output_and_shows_no_masked_key(subject: Subject) -> None:
    heads, backend = _heads(), subject.moved()
    for name, mask, mixed, weights in _shown(subject, heads):
        plain = backend(*heads, _prepared(backend, mask))
        require_same(mixed, plain, f"outputs with weights, {name}")
        forbidden = weights.masked_select(~_cells(mask))
        require(forbidden.eq(0).all(), f"{name}: a masked key has weight")


def _shown(
    subject: Subject, heads: tuple[Tensor, Tensor, Tensor]
) -> Iterator[tuple[str, Mask, Tensor, Tensor]]:
    """Outputs and weights under each mask that is taken, where weights can be asked for."""
    backend = subject.moved()
    for name, mask in MASKS.items():
        if subject.takes(mask):
            prepared = _prepared(backend, mask)
            try:
                mixed, weights = backend.with_weights(*heads, prepared)
            except NotImplementedError:
                raise NotApplicable("it never holds its weights") from None
            yield name, mask, mixed, weights


@promise()
def dropout_acts_on_weights_and_only_when_it_is_asked_for(subject: Subject) -> None:
    """At 0 nothing is drawn; at 0.5 outputs change, and their mean stays."""
    backend = subject.moved()
    heads = [each.detach() for each in _heads()]
    prepared = _prepared(backend, Full())
    with nothing_drawn("numbers are drawn without dropout"):
        plain = backend(*heads, prepared)
        same = torch.equal(plain, backend(*heads, prepared, 0.0))
        require(same, "a share of 0 drops something")
    with own_numbers(0):
        draws: Any = torch.stack([backend(*heads, prepared, 0.5) for _ in range(200)])
    require((draws[0] - plain).abs().max() > 1e-3, "a share of 0.5 drops nothing")
    error = relative_error(draws.mean(0), plain)
    require(error < 0.2, f"the mean over 200 draws is off by {error:.2g}")


@promise()
def queries_and_keys_may_differ_in_number(subject: Subject) -> None:
    backend = subject.moved()
    q, k, v = (heads.detach() for heads in _heads())
    mask = subject.first_taken(Dense(torch.tensor([[1, 0, 1, 0, 1, 1], [0, 1, 1, 0, 0, 1]]) > 0))
    few = backend.prepare(mask, Position(DIMS), INDEX[:, 2:4], INDEX, Sizes(2, HEADS, 2, 6))
    found = backend(q[:, :, 2:4], k, v, few)
    every = torch.ones(2, 6) > 0
    whole = Dense(torch.cat([every, mask.dense(1, 1, 2, 6)[0, 0], every]))
    expected = backend(q, k, v, _prepared(backend, whole))
    require_same(found, expected[:, :, 2:4], "two queries of six")


@promise()
def its_inputs_are_left_as_they_are(subject: Subject) -> None:
    backend = subject.moved()
    given = [heads.detach() for heads in _heads()]
    with left_alone(*given):
        for mask in filter(subject.takes, MASKS.values()):
            backend(*given, _prepared(backend, mask))
