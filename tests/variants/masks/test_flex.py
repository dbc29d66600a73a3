"""FlexAttention: the rule that it takes, and what it makes of it."""

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, create_mask, flex_attention

from tests.messages import Messages
from variants.masks import (
    Blocks,
    Causal,
    Dense,
    Dilated,
    Documents,
    Full,
    Mask,
    Padding,
    Prefix,
    Window,
)

BATCH, HEADS, N = 2, 2, 6
LEFT = Padding(keep=torch.tensor([[False, False, True, True, True, True], [True] * 6]))
CELLS = torch.rand(BATCH, HEADS, N, N, generator=torch.Generator().manual_seed(0)) < 0.5
MASKS: list[Mask] = [
    *(Full(), ~Full(), Causal(), Window(radius=1), Prefix(2), Dilated(2), Blocks(2), LEFT),
    *(Padding(lengths=[2, 6]), Documents(torch.tensor([[0, 0, 1, 1, 1, 2]])), Dense(CELLS)),
    *(Dense(CELLS[:1]), Dense(CELLS[:, 0]), Dense(CELLS[0, 0])),
    *(LEFT & Prefix(1), LEFT & Blocks(2) | Causal(), ~(LEFT & Dilated(2)), LEFT & Causal()),
    Mask.from_rule(lambda batch, head, query, key: (head == 1) | (key <= query)),
]
each_mask = pytest.mark.parametrize("mask", MASKS, ids=lambda mask: f"{mask!r:.40}")


def cells(mask: Mask) -> Tensor:
    return mask.dense(BATCH, HEADS, N, N).expand(BATCH, HEADS, N, N)


@each_mask
def test_flex_reads_the_mask_that_we_lower(mask: Mask) -> None:
    for rule in (mask.mask_mod(), mask.mask_mod(queries=N, keys=N)):
        assert torch.equal(create_mask(rule, BATCH, HEADS, N, N, device="cpu"), cells(mask))


@each_mask
def test_a_rule_of_flex_is_a_mask(mask: Mask) -> None:
    assert torch.equal(cells(Mask.from_rule(mask.mask_mod())), cells(mask))


@each_mask
def test_the_block_mask_of_flex_holds_the_blocks_that_allow_something(mask: Mask) -> None:
    size = 2
    blocks = create_block_mask(
        mask.mask_mod(), BATCH, HEADS, N, N, device="cpu", BLOCK_SIZE=size
    ).to_dense()
    ours = cells(mask).unfold(2, size, size).unfold(3, size, size).flatten(4).any(-1)
    assert torch.equal(blocks.bool(), ours)


@each_mask
def test_the_rule_answers_for_indices_that_broadcast(mask: Mask) -> None:
    sizes = (BATCH, HEADS, N, N)
    shapes = ((-1, 1, 1, 1), (1, -1, 1, 1), (1, 1, -1, 1), (1, 1, 1, -1))
    index = [torch.arange(n).reshape(at) for n, at in zip(sizes, shapes, strict=True)]
    assert torch.equal(mask.mask_mod()(*index).expand(sizes), cells(mask))


def test_a_rule_that_depends_on_the_lengths_asks_for_them(messages: Messages) -> None:
    mask = Causal("last") & Window(radius=3)
    with messages.raises(ValueError):
        mask.mask_mod()
    read = create_mask(mask.mask_mod(queries=2, keys=5), 1, 1, 2, 5, device="cpu")
    assert torch.equal(read, mask.dense(1, 1, 2, 5))


def test_lengths_that_the_mask_does_not_fit_are_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        LEFT.mask_mod(queries=8, keys=8)
    with messages.raises(ValueError):
        (LEFT & Causal()).mask_mod(queries=2)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_a_block_mask_for_another_length_is_refused_by_flex() -> None:
    blocks = create_block_mask(Causal().mask_mod(), 1, 1, 16, 16, device="cpu")
    q = torch.zeros(1, 1, 8, 16)
    with pytest.raises(ValueError, match="but got q_len=8"):
        flex_attention(q, q, q, block_mask=blocks)
