"""Does a mask look ahead? It is decided once, for every length."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

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

SMALL = st.integers(0, 9)
RULES: st.SearchStrategy[Mask] = st.one_of(
    st.just(Full()),
    st.just(Causal()),
    st.builds(Prefix, SMALL),
    st.builds(GlobalTokens, SMALL),
    st.builds(Window, left=SMALL, right=SMALL),
    st.builds(Window, left=SMALL),
    st.builds(Dilated, st.integers(1, 9)),
    st.builds(Blocks, st.integers(1, 6), st.integers(0, 2)),
)
MASKS = st.recursive(
    RULES,
    lambda inner: st.one_of(
        st.builds(lambda one, other: one & other, inner, inner),
        st.builds(lambda one, other: one | other, inner, inner),
        st.builds(lambda one: ~one, inner),
    ),
    max_leaves=4,
)


@settings(deadline=None, max_examples=200)
@given(MASKS)
def test_it_is_what_the_cells_of_a_long_text_say(mask: Mask) -> None:
    cells = mask.dense(1, 1, 200, 200).expand(1, 1, 200, 200)
    assert mask.looks_ahead() == bool(cells.triu(1).any())


@pytest.mark.parametrize("rate", [7, 8, 9, 63, 64, 65, 70, 1023, 1024, 1025, 5000, 100_003])
def test_no_distance_is_too_far(rate: int) -> None:
    assert (Causal() | Dilated(rate)).looks_ahead()
    assert not (Causal() & Dilated(rate)).looks_ahead()
    assert (Causal() | ~Window(right=rate)).looks_ahead()
    assert not (Window(right=0) & ~Window(right=rate)).looks_ahead()
    assert (Causal() | (Dilated(rate) & Dilated(rate + 1))).looks_ahead()


@pytest.mark.parametrize("size", [8, 64, 65, 500, 1025])
def test_no_block_or_start_is_too_long(size: int) -> None:
    assert (Causal() | (Blocks(size) & ~Blocks(size - 1))).looks_ahead()
    assert (Causal() | (Prefix(size) & ~Prefix(size - 1))).looks_ahead()
    assert not (Causal() | (Prefix(1) & Dilated(size))).looks_ahead()
    assert (Causal() | (~Prefix(size) & ~GlobalTokens(size) & Dilated(size))).looks_ahead()


def test_random_blocks_look_ahead_unless_a_causal_rule_hides_it() -> None:
    assert RandomBlocks(4, count=1).looks_ahead()
    assert not (RandomBlocks(4, count=1) & Causal()).looks_ahead()
    assert not (Window(left=3, right=0) & RandomBlocks(2)).looks_ahead()


@pytest.mark.parametrize(
    ("mask", "ahead"),
    [
        (Dense(torch.ones(2, 3, 40, 40).tril() > 0), False),
        (Dense(torch.ones(1, 1, 40, 40) > 0), True),
        (Documents(torch.tensor([[0, 1, 2, 3]])), False),
        (Documents(torch.tensor([[0, 0, 1, 1]])), True),
        (Documents(torch.tensor([[0, 0, 1, 1]])) & Causal(), False),
        (Padding(lengths=[3, 70]), True),
    ],
)
def test_masks_of_tensors_are_looked_at_as_they_are(mask: Mask, ahead: bool) -> None:
    assert mask.looks_ahead() == ahead


class Own(Mask):
    name = "own"

    def __init__(self, distance: int) -> None:
        self.distance = distance

    def allows(self, batch: Any, head: Any, query: Any, key: Any) -> Any:
        return key - query == self.distance


class Behind(Own):
    sees_later = False


def test_a_rule_of_ones_own_is_followed_as_far_as_its_numbers_suggest() -> None:
    for distance in (1, 70, 500):
        assert Own(distance).looks_ahead()
        assert not Own(-distance).looks_ahead()
        assert not (Own(distance) & Causal()).looks_ahead()
    assert not (Behind(-5000) | Causal()).looks_ahead()
    assert Mask.from_rule(lambda batch, head, query, key: key == query + 900).looks_ahead()


def test_a_mask_that_takes_too_long_to_look_through_counts_as_looking_ahead() -> None:
    rare = Blocks(10_007) & Blocks(10_009, radius=3) & Dilated(10_009) & ~Window(right=10_008)
    assert (Causal() | rare).looks_ahead()
