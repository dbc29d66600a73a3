"""Each mask against a rule written as loops, and against its drawing."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.messages import Messages
from variants.masks import (
    Blocks,
    Causal,
    Dense,
    Dilated,
    Documents,
    Full,
    GlobalTokens,
    Mask,
    Padding,
    Prefix,
    RandomBlocks,
    Window,
)

BATCH, HEADS, N = 2, 3, 6
KEEP = [[False, True, True, True, False, True], [True, True, True, False, False, False]]
IDS = [[0, 0, 1, 1, 1, 2], [5, 5, 5, 5, 3, 3]]
CELLS = torch.rand(BATCH, HEADS, N, N, generator=torch.Generator().manual_seed(0)) < 0.5

RULES: list[tuple[Mask, Callable[[int, int, int, int], bool]]] = [
    (Full(), lambda b, h, q, k: True),
    (Causal(), lambda b, h, q, k: k <= q),
    (Window(radius=2), lambda b, h, q, k: abs(q - k) <= 2),
    (Window(radius=0), lambda b, h, q, k: q == k),
    (Window(left=2, right=1), lambda b, h, q, k: q - 2 <= k <= q + 1),
    (Window(left=2), lambda b, h, q, k: k >= q - 2),
    (Window(right=1), lambda b, h, q, k: k <= q + 1),
    (Prefix(2), lambda b, h, q, k: k in (0, 1)),
    (Prefix(0), lambda b, h, q, k: False),
    (Dilated(3), lambda b, h, q, k: k in range(q % 3, N, 3)),
    (Blocks(4), lambda b, h, q, k: (q < 4) == (k < 4)),
    (Blocks(2, radius=1), lambda b, h, q, k: {q, k} & {2, 3} != set() or (q < 2) == (k < 2)),
    (GlobalTokens(2), lambda b, h, q, k: min(q, k) < 2),
    (GlobalTokens(0), lambda b, h, q, k: False),
    (Padding(lengths=[2, 5]), lambda b, h, q, k: k < (2, 5)[b]),
    (Padding(keep=torch.tensor(KEEP)), lambda b, h, q, k: KEEP[b][k]),
    (Documents(torch.tensor(IDS)), lambda b, h, q, k: IDS[b][q] == IDS[b][k]),
    (Documents(torch.tensor(IDS[:1])), lambda b, h, q, k: IDS[0][q] == IDS[0][k]),
    (Dense(CELLS[0, 0]), lambda b, h, q, k: bool(CELLS[0, 0, q, k])),
    (Dense(CELLS[:, 0]), lambda b, h, q, k: bool(CELLS[b, 0, q, k])),
    (Dense(CELLS[:1]), lambda b, h, q, k: bool(CELLS[0, h, q, k])),
    (Dense(CELLS[:, :1]), lambda b, h, q, k: bool(CELLS[b, 0, q, k])),
    (Dense(CELLS), lambda b, h, q, k: bool(CELLS[b, h, q, k])),
    (Mask.from_rule(lambda b, h, q, k: (h == 1) | (k == b)), lambda b, h, q, k: h == 1 or k == b),
    (Causal() & ~Window(radius=1), lambda b, h, q, k: k <= q - 2),
    (Causal() | Prefix(2), lambda b, h, q, k: k <= q or k < 2),
    (
        (Window(radius=2) & Dilated(2)) | GlobalTokens(1),
        lambda b, h, q, k: abs(q - k) in (0, 2) or q == 0 or k == 0,
    ),
    (~(Blocks(3) | Dilated(2)), lambda b, h, q, k: q // 3 != k // 3 and (q - k) % 2 == 1),
]
names = [f"{type(mask).__name__}-{number}" for number, (mask, _) in enumerate(RULES)]
each_rule = pytest.mark.parametrize(("mask", "rule"), RULES, ids=names)


def loops(rule: Callable[[int, int, int, int], bool], batch: int, queries: int) -> torch.Tensor:
    cells = torch.zeros(batch, HEADS, queries, N, dtype=torch.bool)
    for b in range(batch):
        for h in range(HEADS):
            for q in range(queries):
                for k in range(N):
                    cells[b, h, q, k] = rule(b, h, q, k)
    return cells


@each_rule
def test_a_mask_is_its_rule(mask: Mask, rule: Any) -> None:
    cells = mask.dense(BATCH, HEADS, N, N)
    assert cells.dtype == torch.bool
    assert torch.equal(cells.expand(BATCH, HEADS, N, N), loops(rule, BATCH, N))


@each_rule
def test_some_rows_are_the_rows_of_the_whole(mask: Mask, rule: Any) -> None:
    rows = torch.tensor([4, 1, 1])
    some = mask.rows(rows, BATCH, HEADS, N, N).expand(BATCH, HEADS, 3, N)
    assert torch.equal(some, loops(rule, BATCH, N)[:, :, rows])


def joined(one: Any, other: Any, word: str) -> tuple[Mask, Callable[[int, int, int, int], bool]]:
    (mask, rule), (mask_of_other, rule_of_other) = one, other
    if word == "&":
        return mask & mask_of_other, lambda *at: rule(*at) and rule_of_other(*at)
    return mask | mask_of_other, lambda *at: rule(*at) or rule_of_other(*at)


# Rules that count from the first real token are asked about padding in tests of their own.
combined = st.recursive(
    st.sampled_from(
        [rule for rule in RULES if not any(a.counts_real_tokens for a in rule[0].atoms())]
    ),
    lambda inner: st.one_of(
        st.builds(joined, inner, inner, st.sampled_from("&|")),
        st.builds(lambda one: (~one[0], lambda *at: not one[1](*at)), inner),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(combined)
def test_a_combination_is_its_rule(one: Any) -> None:
    mask, rule = one
    cells = mask.dense(BATCH, HEADS, N, N)
    assert torch.equal(cells.expand(BATCH, HEADS, N, N), loops(rule, BATCH, N))


SHAPES = [
    (Full(), (1, 1, 1, 1)),
    (~Full(), (1, 1, 1, 1)),
    (Causal(), (1, 1, N, N)),
    (Prefix(2), (1, 1, 1, N)),
    (Padding(lengths=[2, 5]), (2, 1, 1, N)),
    (~Padding(lengths=[2, 5]), (2, 1, 1, N)),
    (Padding(lengths=[2, 5]) & Full(), (2, 1, 1, N)),
    (Padding(lengths=[2, 5]) & Padding(keep=torch.tensor(KEEP)), (2, 1, 1, N)),
    (Padding(lengths=[2, 5]) & Causal(), (2, 1, N, N)),
    (Documents(torch.tensor(IDS[:1])), (1, 1, N, N)),
    (Dense(CELLS[:1]), (1, HEADS, N, N)),
    (Dense(CELLS[:, 0]), (2, 1, N, N)),
]


@pytest.mark.parametrize(("mask", "shape"), SHAPES, ids=lambda value: f"{value!r:.40}")
def test_a_mask_is_no_larger_than_it_must_be(mask: Mask, shape: tuple[int, ...]) -> None:
    assert mask.dense(BATCH, HEADS, N, N).shape == shape


DRAWINGS = [
    (Full(), "#### #### #### ####"),
    (~Full(), ".... .... .... ...."),
    (Causal(), "#... ##.. ###. ####"),
    (Causal() & Window(radius=1), "#... ##.. .##. ..##"),
    (Window(radius=1), "##.. ###. .### ..##"),
    (Window(left=1, right=0), "#... ##.. .##. ..##"),
    (Causal() | Prefix(2), "##.. ##.. ###. ####"),
    (Dilated(2), "#.#. .#.# #.#. .#.#"),
    (Blocks(2), "##.. ##.. ..## ..##"),
    (Blocks(3), "###. ###. ###. ...#"),
    (~Blocks(2), "..## ..## ##.. ##.."),
    (Padding(lengths=[3]), "###. ###. ###. ###."),
    (Documents(torch.tensor([[7, 7, 7, 2]])), "###. ###. ###. ...#"),
    (Dense(torch.eye(4).bool()), "#... .#.. ..#. ...#"),
    (Dilated(2) & Window(radius=2) & Causal(), "#... .#.. #.#. .#.#"),
    (GlobalTokens(1), "#### #... #... #..."),
    (Window(radius=1) | GlobalTokens(1), "#### ###. #### #.##"),
    (
        Blocks(2) | GlobalTokens(1) | Dense(torch.eye(4).roll(2, 1) > 0),
        "#### ##.# #.## ####",
    ),
    (Blocks(1, radius=1), "##.. ###. .### ..##"),
]


@pytest.mark.parametrize(("mask", "drawing"), DRAWINGS, ids=lambda value: f"{value!r:.40}")
def test_a_mask_is_drawn_as_expected(mask: Mask, drawing: str) -> None:
    assert mask.draw(4) == drawing.replace(" ", "\n")


def test_a_drawing_shows_the_row_and_the_head_that_were_asked_for() -> None:
    padding = Padding(lengths=[1, 2])
    assert padding.draw(2, batch=0) == "#.\n#."
    assert padding.draw(2, batch=1) == "##\n##"
    heads = Dense(torch.tensor([[[[1, 0], [0, 1]], [[0, 1], [1, 0]]]]).bool())
    assert heads.draw(2, head=0) == "#.\n.#"
    assert (heads & padding).draw(2, batch=0, head=1) == "..\n#."


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "make",
    [
        lambda: Window(),
        lambda: Window(radius=1, left=2),
        lambda: Window(radius=-1),
        lambda: Window(left=1, right=-2),
        lambda: Prefix(-1),
        lambda: Dilated(0),
        lambda: Blocks(0),
        lambda: Blocks(1, radius=-1),
        lambda: GlobalTokens(-1),
        lambda: RandomBlocks(0),
        lambda: RandomBlocks(1, count=0),
        lambda: RandomBlocks(1, seed=-1),
        lambda: Window(radius=True),
        lambda: Window(left=1.5),  # pyright: ignore[reportArgumentType]
        lambda: Prefix("2"),  # pyright: ignore[reportArgumentType]
        lambda: Padding(lengths=[2, -1]),
    ],
)
def test_sizes_that_make_no_sense_are_refused(messages: Messages, make: Callable[[], Mask]) -> None:
    with messages.raises(ValueError):
        make()
