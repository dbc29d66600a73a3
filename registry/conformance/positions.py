"""Positions: declared facts are true, and tokens are placed by their indices alone."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from registry.conformance.checks import (
    nothing_drawn,
    only_for,
    promise,
    require,
    require_same,
    require_same_gradients,
)
from registry.conformance.subject import (
    HEADS,
    Subject,
    answers,
    draws,
    gradients,
    moved,
    ragged,
    tokens,
    vectors,
)
from registry.registry import registry_of
from variants.positions import Position
from variants.positions.position import BeyondTableError

SEEN = 1e-4
"""What moves by more than this has been seen."""


@promise()
def declared_order_is_true(subject: Subject) -> None:
    """`sees_order`: permuting the tokens permutes the outputs exactly where it is False."""
    only_for(not subject.needs_causal, "a causal mask shows the order of tokens by itself")
    _compare(subject, [3, 0, 5, 1, 4, 2], "sees_order", "permuting the tokens")


@promise()
def declared_direction_is_true(subject: Subject) -> None:
    """`sees_direction`: reversing the tokens reverses the outputs exactly where it is False."""
    only_for(not subject.needs_causal, "a causal mask has a direction by itself")
    _compare(subject, [5, 4, 3, 2, 1, 0], "sees_direction", "reversing the tokens")


def _compare(subject: Subject, order: list[int], fact: str, change: str) -> None:
    """At neighbouring indices, and at the widest even spacing that is answered."""
    encoder, batch = subject.encoder(), torch.tensor([[1, 2, 3, 4, 5, 6]])
    near, moved = torch.arange(6).unsqueeze(0), list[Tensor]()
    wide = next(near * step for step in (1000, 80, 10, 1) if answers(encoder, near * step))
    for index in (near, wide):
        there = encoder(batch[:, order], positions=index).hidden
        moved.append(there - encoder(batch, positions=index).hidden[:, order])
    _agree(subject, fact, torch.stack(moved), change)


def _agree(subject: Subject, fact: str, moved: Tensor, change: str, when: bool = True) -> None:
    declared, size = getattr(subject.position, fact), moved.abs().max().item()
    seen = size > SEEN
    require(
        seen or size < 1e-9,
        f"{change} moves the states by {size:.2g}: too little to be seen, too much to be rounding",
    )
    what = f"moves the states by {size:.2g}" if seen else "moves nothing"
    require(seen == (declared is when), f"{fact} = {declared}, but {change} {what}")


@promise()
def declared_distance_is_true(subject: Subject) -> None:
    """`distance_only`: a shift of all indices by 1000 changes nothing exactly where it is True."""
    encoder, batch = subject.drawing(), tokens(1, 6)

    def states(shift: int) -> Tensor:
        source = torch.Generator().manual_seed(0)
        index = torch.arange(6).unsqueeze(0) + shift
        return encoder(batch, positions=index, generator=source).hidden

    here = states(0)
    for shift in (1000, 100, 10, 2):
        try:
            moved = states(shift) - here
        except BeyondTableError:
            continue
        change = f"a shift of all indices by {shift}"
        _agree(subject, "distance_only", moved, change, when=False)
        return


@promise()
def places_are_told_by_indices_alone(subject: Subject) -> None:
    """Tokens that trade places and keep their indices keep their outputs."""
    only_for(not subject.needs_causal, "a causal mask tells places by itself")
    encoder, batch = subject.encoder(), tokens(2, 6)
    index = torch.tensor([[0, 1, 2, 3, 4, 5], [2, 3, 9, 11, 30, 31]])
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    before = encoder(batch, positions=index).hidden
    after = encoder(batch[:, order], positions=index[:, order]).hidden
    require_same(after, before[:, order], "the states of tokens that traded places")


@promise()
def each_sample_is_placed_by_its_own_indices(subject: Subject) -> None:
    """Each seam answers for a sample in a batch as it does for that sample alone."""
    position = subject.position
    q, k = vectors(2, HEADS, 5, 8), vectors(2, HEADS, 5, 8, seed=1)
    index = torch.tensor([[0, 1, 2, 3, 4], [3, 4, 5, 7, 9]])
    outs = _seams(position, q, k, index, index)
    for seam in ("bias", "scores"):
        shape = tuple(outs[seam].shape) if seam in outs else (2, HEADS, 5, 5)
        require(
            shape in ((2, HEADS, 5, 5), (2, 1, 5, 5)),
            f"{seam} has the shape (batch, heads or 1, query, key), which is {(2, HEADS, 5, 5)} "
            f"here; got {shape}",
        )
    for sample in (0, 1):
        each = slice(sample, sample + 1)
        alone = _seams(position, q[each], k[each], index[each], index[each])
        for seam, out in outs.items():
            shapes = tuple(out.shape), tuple(alone[seam].shape)
            where = f"{seam} of two samples has shape {shapes[0]}, of one {shapes[1]}"
            require(shapes[0][1:] == shapes[1][1:], where)
            require_same(out[each], alone[seam], f"{seam} for sample {sample} of a batch")


def _seams(
    position: Position, q: Tensor, k: Tensor, q_index: Tensor, k_index: Tensor
) -> dict[str, Tensor]:
    """What every seam answers; those that add nothing are left out."""
    turned_q, turned_k = position.rotate(q, k, q_index, k_index)
    answers = {
        "embed": position.embed(q_index),
        "rotate (queries)": turned_q,
        "rotate (keys)": turned_k,
        "bias": position.bias(q_index, k_index),
        "scores": position.scores(q, k, q_index, k_index),
    }
    return {seam: answer for seam, answer in answers.items() if answer is not None}


def _rows(
    position: Position, index: Tensor, dtype: torch.dtype = torch.float64
) -> dict[str, Tensor]:
    """What each seam says about each index, against a key at index 0."""
    ones = torch.ones(1, HEADS, index.shape[1], 8, dtype=dtype)
    rows = _seams(position, ones, ones[:, :, :1], index, torch.zeros_like(index[:, :1]))
    return {seam: row for seam, row in rows.items() if seam != "rotate (keys)"}


@promise()
def backends_agree_forward_and_backward(subject: Subject) -> None:
    """Wherever the position is used by a backend of softmax attention."""
    found: dict[str, dict[str, Tensor]] = {}
    for name, backend in registry_of("attention").items():
        if getattr(backend, "softmax", True):
            encoder = subject.encoder(attention=name)
            out = encoder(ragged()).hidden
            found[name] = {"states": out, **gradients(encoder, out)}
    expected = found.pop("explicit")
    for name, values in found.items():
        require_same_gradients(values, expected, f"{{}} of {name}, against explicit")


LIMIT = 2**16


@promise()
def declared_policy_beyond_is_what_happens(subject: Subject) -> None:
    """`beyond`: past its longest index a position extends, raises, clamps, rescales or resamples.

    "raises" refuses, naming its limit; the others never do. "clamps" answers all far indices alike.
    What "extends" and "clamps" say about an index does not depend on how long the sequence is, what
    "resamples" says does, as soon as the sequence is longer than what it was built for.
    """
    position, end = subject.position, reach(subject)
    policy = position.beyond
    if policy == "raises":
        require(end < LIMIT, f"beyond = 'raises', but index {LIMIT} is answered")
        return
    require(end == LIMIT, f"beyond = {policy!r}, but index {end + 1} is refused")
    for seam, rows in _rows(position, torch.tensor([[0, 1, 2, LIMIT - 2, LIMIT - 1]])).items():
        require(rows.isfinite().all(), f"{seam} is not finite at index {LIMIT}")
        far = (rows[..., -1, :] - rows[..., -2, :]).abs().max()
        if policy == "clamps":
            require(far == 0, f"beyond = 'clamps', but {seam} differs at {LIMIT - 1} and {LIMIT}")
    _compare_lengths(position)


def _compare_lengths(position: Position) -> None:
    short = min(position.longest or 64, 2048)
    brief, long = (_rows(position, torch.arange(n).unsqueeze(0)) for n in (short, 2 * short))
    policy, moved = position.beyond, 0.0
    for seam, rows in brief.items():
        moved = max(moved, (rows - long[seam][..., :short, :]).abs().max().item())
    said = f"a sequence of {2 * short} tokens moves what is said about the first {short}"
    if policy in ("extends", "clamps"):
        require(moved < 1e-9, f"beyond = {policy!r}, but {said} by {moved:.2g}")
    if policy == "resamples":
        require(moved > 1e-6, f"beyond = 'resamples', but {said} by {moved:.2g} only")


def reach(subject: Subject) -> int:
    """The last index that is answered, by a sequence that ends there; at most `LIMIT`."""
    position, last, refused = subject.position, 0, LIMIT + 1
    while refused - last > 1:
        middle = min(2 * last + 8, LIMIT) if refused > LIMIT else (last + refused) // 2
        if _answers(position, middle):
            last = middle
            if last == LIMIT:
                break
        else:
            refused = middle
    return last


def _answers(position: Position, last: int) -> bool:
    try:
        if draws(position):
            everything = torch.arange(last + 1).unsqueeze(0)
            type(position).place(position, everything, torch.Generator().manual_seed(0))
        else:
            _rows(position, torch.tensor([[0, last]]))
    except BeyondTableError as error:
        said = any(letter.isdigit() for letter in str(error))
        require(said, f"what is raised beyond the last index names no number: {error}")
        return False
    return True


@promise()
def rows_of_an_absolute_table_stay_distinct(subject: Subject) -> None:
    """At every index that it answers up to 2047, in float64, float32 and bfloat16."""
    only_for(type(subject.position).embed is not Position.embed, "it adds nothing to tokens")
    end = min(reach(subject), (subject.position.longest or LIMIT) - 1, 2047)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        position = deepcopy(subject.position).to(dtype)
        rows: Any = position.embed(torch.arange(end + 1).unsqueeze(0))
        only_for(rows is not None, "it adds nothing to tokens")
        distinct = len(rows[0].to(dtype).unique(dim=0))
        require(distinct == end + 1, f"in {dtype}, {end + 1} indices have {distinct} distinct rows")


@promise()
def phases_are_exact_in_a_low_precision_model(subject: Subject) -> None:
    """What a model in bfloat16 adds and turns differs from float64 by its own rounding alone."""
    last = min(reach(subject), 4096)
    index = torch.tensor([[0, 1, 255, 256, 257, last - 2, last - 1, last]]).clamp(0, last)
    low = deepcopy(subject.position).bfloat16()
    exact = deepcopy(low).double()
    for seam, expected in _rows(exact, index).items():
        found = _rows(low, index, torch.bfloat16)[seam].double()
        require_same(found, expected, f"{seam} in a bfloat16 model up to index {last}", 2e-2)


@promise()
def drawn_places_keep_order_and_come_from_their_generator(subject: Subject) -> None:
    """`place`: later tokens get later places, alone as in any batch; nothing else is drawn."""
    only_for(draws(subject.position), "it draws no places")
    position = moved(subject.make())
    index = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 2]])
    with nothing_drawn("the global generator is used as well"):
        first, again, other = (_drawn(position, index, seed) for seed in (1, 1, 2))
    require(torch.equal(first, again), "one seed gives two draws")
    require(not torch.equal(first, other), "two seeds give one draw")
    alone = _drawn(position, index[:1], 1)
    require(torch.equal(alone, first[:1]), "a sequence gets other places alone than in a batch")
    require(torch.equal(first[1, :3], first[1, 3:]), "packed documents get places of their own")
    require((first[0].diff() > 0).all(), "a later token does not get a later place")
    require((first >= 0).all(), "a place is negative")


def _drawn(position: Position, index: Tensor, seed: int) -> Tensor:
    return position.place(index, torch.Generator().manual_seed(seed))
