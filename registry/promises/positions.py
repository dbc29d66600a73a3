"""Positions: declared facts are true, and tokens are told by their indices alone."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import torch
from torch import Tensor

from registry.promises.promise import insist, insist_same, promise
from registry.promises.subject import HEADS, Subject, answers, only_for, tokens, vectors
from registry.table import table_of
from variants.positions import Position
from variants.positions.position import BeyondTableError

SEEN = 1e-4
"""What moves by more than this has been seen."""


@promise()
def declared_order_is_true(subject: Subject) -> None:
    """`sees_order`: permuting the tokens permutes the outputs exactly where it is False."""
    only_for(not subject.needs_causal(), "a causal mask shows the order of tokens by itself")
    _compare(subject, [3, 0, 5, 1, 4, 2], "sees_order", "permuting the tokens")


@promise()
def declared_direction_is_true(subject: Subject) -> None:
    """`sees_direction`: reversing the tokens reverses the outputs exactly where it is False."""
    only_for(not subject.needs_causal(), "a causal mask has a direction by itself")
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
    insist(
        seen or size < 1e-9,
        f"{change} moves the states by {size:.2g}: too little to be seen, too much to be rounding",
    )
    what = f"moves the states by {size:.2g}" if seen else "moves nothing"
    insist(seen == (declared is when), f"{fact} = {declared}, but {change} {what}")


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
        return _agree(subject, "distance_only", moved, change, when=False)
    return None


@promise()
def places_are_told_by_indices_alone(subject: Subject) -> None:
    """Tokens that trade places and keep their indices keep their outputs."""
    only_for(not subject.needs_causal(), "a causal mask tells places by itself")
    encoder, batch = subject.encoder(), tokens(2, 6)
    index = torch.tensor([[0, 1, 2, 3, 4, 5], [2, 3, 9, 11, 30, 31]])
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    before = encoder(batch, positions=index).hidden
    after = encoder(batch[:, order], positions=index[:, order]).hidden
    insist_same(after, before[:, order], "the states of tokens that traded places")


@promise()
def each_sample_is_placed_by_its_own_indices(subject: Subject) -> None:
    """Each seam answers for a sample in a batch as it does for that sample alone."""
    position = subject.position
    q, k = vectors(2, HEADS, 5, 8), vectors(2, HEADS, 5, 8, seed=1)
    index = torch.tensor([[0, 1, 2, 3, 4], [3, 4, 5, 7, 9]])
    outs = _seams(position, q, k, index)
    for seam in ("bias", "scores"):
        shape = tuple(outs[seam].shape) if seam in outs else (2, HEADS, 5, 5)
        insist(
            shape in ((2, HEADS, 5, 5), (2, 1, 5, 5)),
            f"{seam} has the shape (batch, heads or 1, query, key), which is {(2, HEADS, 5, 5)} "
            f"here; got {shape}",
        )
    for sample in (0, 1):
        one = slice(sample, sample + 1)
        alone = _seams(position, q[one], k[one], index[one])
        for seam, out in outs.items():
            insist(
                out.shape[1:] == alone[seam].shape[1:],
                f"{seam} of two samples has shape {tuple(out.shape)}, "
                f"of one {tuple(alone[seam].shape)}",
            )
            insist_same(out[one], alone[seam], f"{seam} for sample {sample} of a batch")


def _seams(position: Position, q: Tensor, k: Tensor, index: Tensor) -> dict[str, Tensor]:
    """What every seam answers; those that add nothing are left out."""
    turned_q, turned_k = position.rotate(q, k, index, index)
    answers = {
        "embed": position.embed(index),
        "rotate (queries)": turned_q,
        "rotate (keys)": turned_k,
        "bias": position.bias(index, index),
        "scores": position.scores(q, k, index, index),
    }
    return {seam: answer for seam, answer in answers.items() if answer is not None}


@promise()
def backends_agree_forward_and_backward(subject: Subject) -> None:
    """Wherever the position is used by a backend of softmax attention."""
    from registry.promises.subject import gradients, ragged

    found: dict[str, dict[str, Tensor]] = {}
    for name, backend in table_of("attention").items():
        if getattr(backend, "softmax", True):
            encoder = subject.encoder(attention=name)
            out = encoder(ragged()).hidden
            found[name] = {"states": out, **gradients(encoder, out)}
    expected = found.pop("explicit")
    for name, values in found.items():
        insist(values.keys() == expected.keys(), f"{name} gives gradients to other parameters")
        for what, value in values.items():
            insist_same(value, expected[what], f"{what} of {name}, against explicit")
