"""Tests of a mask of your own, and of the attention that should obey it.

pytest examples/test_my_mask.py
"""

import torch
from torch import Tensor, nn

from variants.masks import Causal, Mask, Padding, Window
from variants.masks.testing import assert_no_leak, assert_padding_invariant, assert_same_mask

BATCH, HEADS, LENGTH, WIDTH = 2, 2, 6, 8


class EveryOther(Mask):
    """A query may attend to itself and to every second token before it."""

    def allows(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key <= query) & ((query - key) % 2 == 0)


class MyAttention(nn.Module):
    """Attention as somebody wrote it: one head, no projections, a boolean mask."""

    def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
        scores = (x @ x.mT / x.shape[-1] ** 0.5).masked_fill(~allowed, float("-inf"))
        return scores.softmax(dim=-1) @ x


def test_my_mask_is_what_i_meant() -> None:
    assert EveryOther().draw(4) == "#...\n.#..\n#.#.\n.#.#"
    table = [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]
    assert_same_mask(EveryOther(), torch.tensor(table) > 0)
    assert_same_mask(EveryOther() & Window(radius=1), Window(radius=0))


def test_my_mask_survives_the_way_through_another_library() -> None:
    mask = EveryOther() & Padding(lengths=[4, LENGTH])
    ignore = mask.to_ignore(BATCH, HEADS, LENGTH, LENGTH)
    assert_same_mask(Mask.from_ignore(ignore, heads=HEADS), mask)


def test_my_attention_obeys_my_mask() -> None:
    mask, attention = EveryOther(), MyAttention()
    allowed = mask.dense(BATCH, 1, LENGTH, LENGTH)[:, 0]
    assert_no_leak(lambda x: attention(x, allowed), mask, batch=BATCH, length=LENGTH)


def test_an_attention_of_torch_obeys_my_mask() -> None:
    assert_no_leak(nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), EveryOther())
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=True).eval()
    assert_no_leak(layer, EveryOther() & Causal())


def test_padding_changes_nothing_in_my_attention() -> None:
    def encode(x: Tensor, padding: Mask) -> Tensor:
        batch, length, _ = x.shape
        return MyAttention()(x, padding.dense(batch, 1, length, length)[:, 0])

    assert_padding_invariant(encode)
