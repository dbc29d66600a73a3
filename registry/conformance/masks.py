"""Masks: one rule in every form, the laws of the algebra, and no influence of what is forbidden."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import pickle
from typing import Any

import torch
from torch import Tensor

from registry.conformance import encoders
from registry.conformance.checks import Broken, only_for, promise, require
from registry.conformance.subject import HEADS, Subject
from registry.registry import needs_tensor, registry_of
from variants.masks import Causal, Documents, Full, Mask, Padding, Window
from variants.masks.testing import assert_no_leak


def _sizes(mask: Mask) -> tuple[int, int, int, int]:
    """Sizes at which the mask can be asked: its own, or two rows, two heads and eight tokens."""
    own = mask.sizes(None, None, default=8)
    return max(own.batch, 2) if own.batch == 1 else own.batch, HEADS, own.queries, own.keys


def _cells(mask: Mask) -> Tensor:
    sizes = _sizes(mask)
    return mask.dense(*sizes).expand(sizes)


@promise()
def cells_are_boolean_and_broadcast(subject: Subject) -> None:
    """`dense` gives bool of four axes, each as long as was asked, or 1; True = may attend."""
    mask: Mask = subject.make()
    sizes, cells = _sizes(mask), mask.dense(*_sizes(mask))
    require(cells.dtype == torch.bool, f"dense gives {cells.dtype}")
    shape = tuple(cells.shape)
    fits = len(shape) == 4 and all(n in (1, size) for n, size in zip(shape, sizes, strict=True))
    require(fits, f"dense gives shape {shape} for sizes {sizes}")


@promise()
def every_form_tells_the_same_cells(subject: Subject) -> None:
    """`rows`, `chunk` and `mask_mod` against `dense`."""
    mask: Mask = subject.make()
    sizes, cells = _sizes(mask), _cells(mask)
    some = torch.tensor([2, 0])
    rows = mask.rows(some, *sizes).expand(*sizes[:2], 2, sizes[3])
    require(torch.equal(rows, cells[:, :, some]), "rows differs from dense")
    chunk = mask.chunk(slice(1, 3), *sizes).expand(*sizes[:2], 2, sizes[3])
    require(torch.equal(chunk, cells[:, :, 1:3]), "chunk differs from dense")
    rule = mask.mask_mod(sizes[2], sizes[3])
    at = torch.cartesian_prod(*(torch.arange(size) for size in sizes)).unbind(-1)
    answers = rule(*at).expand(len(at[0]))
    require(torch.equal(answers, cells[at]), "mask_mod differs from dense")


@promise()
def it_obeys_the_laws_of_the_algebra(subject: Subject) -> None:
    mask, again, other = subject.make(), subject.make(), Causal("last") & Window(radius=1)
    laws: dict[str, tuple[Any, Any]] = {
        "mask == the same mask built again": (mask, again),
        "~~mask == mask": (~~mask, mask),
        "mask & mask == mask": (mask & mask, mask),
        "mask | mask == mask": (mask | mask, mask),
        "mask & Full() == mask": (mask & Full(), mask),
        "mask & ~mask == ~Full()": (mask & ~mask, ~Full()),
        "mask | ~mask == Full()": (mask | ~mask, Full()),
        "mask & other == other & mask": (mask & other, other & mask),
        "~(mask & other) == ~mask | ~other": (~(mask & other), ~mask | ~other),
        "a pickled mask is the same": (pickle.loads(pickle.dumps(mask)), mask),
    }
    for law, (left, right) in laws.items():
        require(left == right, f"{law} does not hold")
        require(hash(left) == hash(right), f"{law}, but their hashes differ")
    cells, beside = _cells(mask), other.dense(*_sizes(mask))
    require(torch.equal(_cells(~mask), ~cells), "~mask is not the complement of its cells")
    require(torch.equal(_cells(mask & other), cells & beside), "& is not that of the cells")
    require(torch.equal(_cells(mask | other), cells | beside), "| is not that of the cells")


@promise()
def what_it_says_of_later_keys_and_of_repeating_is_true(subject: Subject) -> None:
    """`sees_later` and `repeats`, by which a mask is known not to look ahead at any length."""
    mask: Mask = subject.make()
    sizes, cells = _sizes(mask), _cells(mask)
    later = torch.ones(sizes[2:]).triu(1) > 0
    require(mask.sees_later or not (cells & later).any(), "sees_later = False, but it sees one")
    declared = type(mask).repeats is not Mask.repeats and not mask.needs_lengths()
    only_for(declared, "it does not say from where on it repeats itself")
    has = mask.repeats()
    start, size = has.start, has.start + 2 * has.step + has.reach + 2 * has.rate + 4
    cells = mask.dense(1, HEADS, size, size).expand(1, HEADS, size, size)
    again = cells[..., start + has.step :, start + has.step :]
    moved = cells[..., start : size - has.step, start : size - has.step]
    require(torch.equal(moved, again), f"it goes on otherwise after {start} tokens: {has}")
    far = torch.ones(size, size).triu(has.reach + 1) > 0
    far = far[start:, start : size - has.rate]
    near, off = cells[..., start:, start : size - has.rate], cells[..., start:, start + has.rate :]
    require(torch.equal(near & far, off & far), f"it goes on otherwise at a distance: {has}")


@promise()
def what_it_forbids_has_no_influence_in_any_backend(subject: Subject) -> None:
    """What it allows has; found by replacing each token and by the gradient of each output.

    In any backend that takes the mask.
    """
    mask = subject.make()
    for name, backend in registry_of("attention").items():
        attention = Subject(registry_of("attention"), backend, {})
        if not attention.takes(mask):
            continue
        encoder = attention.encoder(n_layers=1)
        try:
            assert_no_leak(encoder, mask)
        except AssertionError as error:
            raise Broken(f"{name}: {str(error).splitlines()[0]}") from error


@promise()
def padding_changes_nothing_for_real_tokens(subject: Subject) -> None:
    """On either side, for an encoder with this mask in its config."""
    _only_in_configs(subject)
    encoders.a_sample_alone_equals_itself_in_any_batch(subject)


@promise()
def packed_documents_get_the_cells_that_they_would_get_alone(subject: Subject) -> None:
    """Beside `Documents`, whatever comes before them in the row, and padding in front of them."""
    mask: Mask = subject.make()
    only_for(mask.spans() == (None, None), "it is made for sequences of one length")
    only_for(mask.holds()[0] == 1, "it is made for the rows of one batch")
    ids = torch.tensor([[0] * 3 + [1] * 8, [0] * 6 + [1] * 5])
    keep = torch.ones_like(ids, dtype=torch.bool)
    keep[1, [0, 6]] = False
    packed = mask & Documents(ids) & Padding(keep=keep)
    cells = packed.dense(2, HEADS, 11, 11).expand(2, HEADS, 11, 11)
    for row, first, end in ((0, 0, 3), (0, 3, 11), (1, 1, 6), (1, 7, 11)):
        alone = mask.dense(1, HEADS, end - first, end - first)
        same = torch.equal(
            cells[row, :, first:end, first:end], alone[0].expand(HEADS, end - first, end - first)
        )
        require(same, f"tokens {first} to {end - 1} of a packed row get other cells than alone")


@promise(dear=True)
def it_is_captured_whole_by_dynamo(subject: Subject) -> None:
    """In an encoder with this mask in its config."""
    _only_in_configs(subject)
    encoders.it_is_captured_whole_by_dynamo(subject)


def _only_in_configs(subject: Subject) -> None:
    why = "it is made of a tensor, so it goes to the call, not into a config"
    only_for(not needs_tensor(subject.part), why)
