"""Attention backends against the formula, written out here once more."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable, Iterator
from typing import Any

import torch
from einops import einsum, rearrange
from torch import Tensor

from registry.conformance.checks import NotApplicable, insist, insist_same, promise
from registry.conformance.subject import DIMS, HEADS, Subject, only_for, vectors
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

INDEX = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 4, 7, 8, 30]])


class _Biased(Position):
    """A bias that tells heads, directions and distances apart."""

    def bias(self, q_index: Tensor, k_index: Tensor) -> Tensor:
        query = rearrange(q_index, "batch query -> batch 1 query 1").double()
        key = rearrange(k_index, "batch key -> batch 1 1 key").double()
        head = rearrange(torch.arange(HEADS, dtype=torch.float64), "head -> 1 head 1 1")
        return (0.3 + head) * (query - 2 * key).sin()


class _Contextual(Position):
    """Scores that depend on content and place."""

    def scores(self, q: Tensor, k: Tensor, q_index: Tensor, k_index: Tensor) -> Tensor:
        turned = k * rearrange(k_index, "batch key -> batch 1 key 1").cos()
        pattern = "batch heads query d_head, batch heads key d_head -> batch heads query key"
        return einsum(q.tanh(), turned, pattern)


POSITIONS: dict[str, Callable[[], Position]] = {
    "no position": lambda: Position(DIMS),
    "a bias": lambda: _Biased(DIMS),
    "scores by content": lambda: _Contextual(DIMS),
}


def formula(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor, position: Position
) -> tuple[Tensor, Tensor]:
    """softmax(q·k/√d_head + bias + scores) v over the allowed keys; 0 where there are none."""
    pattern = "batch heads query d_head, batch heads key d_head -> batch heads query key"
    scores = einsum(q, k, pattern) / q.shape[-1] ** 0.5
    for added in (position.bias(INDEX, INDEX), position.scores(q, k, INDEX, INDEX)):
        scores = scores if added is None else scores + added
    shares = scores.exp() * allowed
    weights = shares / shares.sum(-1, keepdim=True).clamp(min=1e-300)
    mixing = "batch heads query key, batch heads key d_head -> batch heads query d_head"
    return einsum(weights, v, mixing), weights


def _heads() -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = (vectors(2, HEADS, 6, 8, seed=seed).requires_grad_() for seed in range(3))
    return q, k, v


def _cells(mask: Mask) -> Tensor:
    return mask.dense(2, HEADS, 6, 6).expand(2, HEADS, 6, 6)


def _only_for_softmax(subject: Subject) -> None:
    only_for(subject.part.softmax, "it declares that it is no softmax attention")


@promise()
def outputs_and_gradients_are_those_of_the_formula(subject: Subject) -> None:
    """For every kind of mask and position, in float64."""
    _only_for_softmax(subject)
    backend = subject.moved()
    for place, make in POSITIONS.items():
        for name, mask in MASKS.items():
            where, position = f"{name}, {place}", make()
            q, k, v = _heads()
            prepared = backend.prepare(mask, position, INDEX, INDEX, SIZES)
            found = backend(q, k, v, prepared)
            expected, _ = formula(q, k, v, _cells(mask), position)
            insist_same(found, expected, f"outputs with {where}")
            loss = vectors(*found.shape, seed=7)
            slopes = torch.autograd.grad((found * loss).sum(), (q, k, v))
            wanted = torch.autograd.grad((expected * loss).sum(), (q, k, v))
            for letter, slope, want in zip("qkv", slopes, wanted, strict=True):
                insist_same(slope, want, f"gradient of {letter} with {where}")


@promise()
def a_masked_key_never_wins_however_low_the_others_score(subject: Subject) -> None:
    """The only key that a query may see scores minus a million, and still gets all its weight."""
    _only_for_softmax(subject)
    backend = subject.moved()
    q, k, v = (one.detach().clone() for one in _heads())
    k[:, :, 0] = -1e6 * q[:, :, 0]
    found = backend(q, k, v, backend.prepare(Causal(), Position(DIMS), INDEX, INDEX, SIZES))
    insist_same(found[:, :, 0], v[:, :, 0], "the first query under a causal mask")


@promise()
def a_query_without_keys_gets_zero_and_gives_zero_gradient(subject: Subject) -> None:
    mask = subject.first_taken(*NO_KEYS)
    backend, row = subject.moved(), 1 if mask is NO_KEYS[0] else 0
    q, k, v = _heads()
    out = backend(q, k, v, backend.prepare(mask, Position(DIMS), INDEX, INDEX, SIZES))
    insist(out[:, :, row].eq(0).all(), "its output is not 0")
    (slope,) = torch.autograd.grad((out * vectors(*out.shape, seed=7)).sum(), q)
    insist(slope.isfinite().all(), "a gradient is not finite")
    insist(slope[:, :, row].eq(0).all(), "its gradient is not 0")


@promise()
def weights_are_those_of_the_formula_where_they_can_be_asked_for(subject: Subject) -> None:
    """Each row sums to 1 over the keys, not over the queries; masked keys have none."""
    _only_for_softmax(subject)
    q, k, v = _heads()
    for name, mask, _, weights in _shown(subject, q, k, v):
        _, expected = formula(q, k, v, _cells(mask), Position(DIMS))
        insist_same(weights, expected, f"weights with {name}")


@promise()
def asking_for_weights_changes_no_output_and_shows_no_masked_key(subject: Subject) -> None:
    q, k, v = _heads()
    backend = subject.moved()
    for name, mask, mixed, weights in _shown(subject, q, k, v):
        plain = backend(q, k, v, backend.prepare(mask, Position(DIMS), INDEX, INDEX, SIZES))
        insist_same(mixed, plain, f"outputs with weights, {name}")
        insist(weights.masked_select(~_cells(mask)).eq(0).all(), f"{name}: a masked key has weight")


def _shown(
    subject: Subject, q: Tensor, k: Tensor, v: Tensor
) -> Iterator[tuple[str, Mask, Tensor, Tensor]]:
    """Outputs and weights under each mask that is taken, where weights can be asked for."""
    backend = subject.moved()
    for name, mask in MASKS.items():
        if subject.takes(mask):
            prepared = backend.prepare(mask, Position(DIMS), INDEX, INDEX, SIZES)
            try:
                mixed, weights = backend.with_weights(q, k, v, prepared)
            except NotImplementedError:
                raise NotApplicable("it never holds its weights") from None
            yield name, mask, mixed, weights


@promise()
def dropout_acts_on_weights_and_only_when_it_is_asked_for(subject: Subject) -> None:
    """At 0 nothing is drawn; at 0.5 outputs change, and their mean stays."""
    backend = subject.moved()
    q, k, v = (one.detach() for one in _heads())
    prepared = backend.prepare(Full(), Position(DIMS), INDEX, INDEX, SIZES)
    before = torch.get_rng_state()
    plain = backend(q, k, v, prepared)
    insist(torch.equal(plain, backend(q, k, v, prepared, 0.0)), "a share of 0 drops something")
    insist(torch.equal(before, torch.get_rng_state()), "numbers are drawn without dropout")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        draws: Any = torch.stack([backend(q, k, v, prepared, 0.5) for _ in range(200)])
    insist((draws[0] - plain).abs().max() > 1e-3, "a share of 0.5 drops nothing")
    error = ((draws.mean(0) - plain).norm() / plain.norm()).item()
    insist(error < 0.2, f"the mean over 200 draws is off by {error:.2g}")


@promise()
def queries_and_keys_may_differ_in_number(subject: Subject) -> None:
    backend = subject.moved()
    q, k, v = (one.detach() for one in _heads())
    mask = subject.first_taken(Dense(torch.tensor([[1, 0, 1, 0, 1, 1], [0, 1, 1, 0, 0, 1]]) > 0))
    sizes = Sizes(2, HEADS, 2, 6)
    found = backend(
        q[:, :, 2:4], k, v, backend.prepare(mask, Position(DIMS), INDEX[:, 2:4], INDEX, sizes)
    )
    whole = Dense(
        torch.cat([torch.ones(2, 6) > 0, mask.dense(1, 1, 2, 6)[0, 0], torch.ones(2, 6) > 0])
    )
    prepared = backend.prepare(whole, Position(DIMS), INDEX, INDEX, SIZES)
    insist_same(found, backend(q, k, v, prepared)[:, :, 2:4], "two queries of six")


@promise()
def its_inputs_are_left_as_they_are(subject: Subject) -> None:
    backend = subject.moved()
    given = [one.detach() for one in _heads()]
    kept = [one.clone() for one in given]
    for mask in filter(subject.takes, MASKS.values()):
        backend(*given, backend.prepare(mask, Position(DIMS), INDEX, INDEX, SIZES))
    for one, before in zip(given, kept, strict=True):
        insist(torch.equal(one, before), "an input is changed in place")
