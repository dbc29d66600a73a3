"""Padding: which tokens are real, where texts start, and what counts from there."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_mask

from tests.messages import Messages
from variants.masks import (
    Blocks,
    Causal,
    Dilated,
    Documents,
    Full,
    GlobalTokens,
    Mask,
    Padding,
    Prefix,
    Window,
)
from variants.masks.testing import assert_same_mask

LEFT = Padding(keep=torch.tensor([[False, False, True, True, True], [True] * 5]))


def test_padding_is_told_by_lengths_or_by_tokens() -> None:
    expected = [[True, True, False, False], [True, True, True, True]]
    assert Padding(lengths=[2, 4]).keep(2, 4).tolist() == expected  # type: ignore[union-attr]
    tokens = torch.tensor([[5, 3, 0, 0], [1, 2, 3, 4]])
    assert Padding.from_tokens(tokens, pad_id=0).keep(2, 4).tolist() == expected
    assert Padding.from_tokens(tokens, pad_id=3).keep(2, 4).tolist() == [
        [True, False, True, True],
        [True, True, False, True],
    ]


def test_padding_with_the_causal_mask_leaves_the_cells_counted_by_hand() -> None:
    allowed = (Causal() & Padding(lengths=[2, 4])).dense(2, 1, 4, 4)
    assert allowed.sum(-1).squeeze(1).tolist() == [[1, 2, 2, 2], [1, 2, 3, 4]]


def test_positions_count_from_the_first_real_token() -> None:
    assert LEFT.positions(2, 5).tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]
    assert (Causal() & LEFT).positions(2, 5).tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]
    assert Padding(lengths=[2]).positions(1, 4).tolist() == [[0, 1, 2, 3]]
    assert Causal().positions(2, 4).tolist() == [[0, 1, 2, 3]]
    assert (Causal() | LEFT).positions(2, 5).tolist() == [[0, 1, 2, 3, 4]]


def test_positions_of_two_paddings_count_from_the_first_token_that_both_keep() -> None:
    one = Padding(keep=torch.tensor([[False, True, True, True]]))
    other = Padding(keep=torch.tensor([[True, False, True, True]]))
    assert (one & other).positions(1, 4).tolist() == [[0, 0, 0, 1]]


def test_positions_of_packed_documents_count_from_each_start() -> None:
    packed = Documents(torch.tensor([[4, 4, 4, 1, 1, 9]]))
    assert packed.positions(1, 6).tolist() == [[0, 1, 2, 0, 1, 0]]
    left = Padding(keep=torch.tensor([[False, True, True, True, True, True]]))
    assert (packed & left).positions(1, 6).tolist() == [[0, 0, 1, 0, 1, 0]]


def kept(mask: Mask, keys: int) -> list[list[bool]]:
    keep = mask.keep(1, keys)
    assert keep is not None
    return keep.tolist()


def test_which_tokens_are_real_passes_through_and_alone() -> None:
    padding, other = Padding(lengths=[2]), Padding(keep=torch.tensor([[True, False, True]]))
    assert kept(Causal() & padding, 3) == [[True, True, False]]
    assert kept(padding & Window(radius=1) & other, 3) == [[True, False, False]]
    assert (Causal() | padding).keep(1, 3) is None
    assert (~padding).keep(1, 3) is None
    assert Full().keep(1, 3) is None


def test_rules_that_count_tokens_count_real_ones_where_padding_is_on_the_left() -> None:
    real = slice(2, 5)
    combined = (Causal() | Prefix(1), ~Blocks(2), Window(radius=1) | GlobalTokens(1))
    for rule in (Prefix(2), Blocks(2), Dilated(2), GlobalTokens(1), *combined):
        alone = rule.dense(1, 1, 3, 3).expand(1, 1, 3, 3)
        shifted = (rule & LEFT).dense(2, 1, 5, 5).expand(2, 1, 5, 5)
        assert torch.equal(shifted[:1, :, real, real], alone)
        assert torch.equal(shifted[1:], rule.dense(1, 1, 5, 5).expand(1, 1, 5, 5))


@pytest.mark.parametrize("rule", [Prefix(1), GlobalTokens(1)], ids=repr)
def test_padding_on_the_left_is_not_among_the_first_tokens(rule: Mask) -> None:
    row = (LEFT | rule).dense(2, 1, 5, 5)[0, 0]
    assert not row[3:, :2].any()
    assert row[3:, 2:].all()


def test_padding_that_does_not_matter_moves_nothing() -> None:
    blocks = Blocks(2)
    cells = (blocks & (LEFT | ~LEFT)).dense(2, 1, 5, 5)
    assert torch.equal(cells, blocks.dense(2, 1, 5, 5).expand_as(cells))


LEFT_ONE = Padding(keep=torch.tensor([[False, True, True]]))


def test_what_padding_says_is_on_the_device_that_was_asked_for() -> None:
    mask = Padding(lengths=[2]) & LEFT_ONE & Documents(torch.zeros(1, 3, dtype=torch.long))
    for answer in (mask.keep(1, 3, "meta"), mask.positions(1, 3, "meta")):
        assert answer is not None
        assert answer.device.type == "meta"
    assert mask.dense(1, 1, 3, 3, device="meta").device.type == "meta"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, ValueError),
        ({"lengths": [1], "keep": torch.ones(1, 1) > 0}, ValueError),
        ({"lengths": torch.tensor([1.0])}, TypeError),
        ({"lengths": torch.tensor([[1]])}, ValueError),
        ({"keep": torch.ones(1, 1)}, TypeError),
        ({"keep": [[True, False]]}, TypeError),
        ({"keep": torch.ones(1) > 0}, ValueError),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_padding_that_is_not_told_clearly_is_refused(
    messages: Messages, arguments: dict[str, object], error: type[Exception]
) -> None:
    with messages.raises(error):
        Padding(**arguments)  # type: ignore[arg-type]


@pytest.mark.usefixtures("unchecked")
def test_padding_comes_from_token_ids_and_the_id_of_padding(messages: Messages) -> None:
    with messages.raises(TypeError):
        Padding.from_tokens(torch.tensor([[1, 0]]), None)  # type: ignore[arg-type]
    with messages.raises(TypeError):
        Padding.from_tokens(torch.ones(1, 2), 0)


def test_padding_for_other_sizes_is_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        Padding(lengths=[1, 2]).dense(3, 1, 4, 4)
    with messages.raises(ValueError):
        (Padding(lengths=[2, 5]) & Causal()).dense(2, 1, 4, 4)
    with messages.raises(ValueError):
        (Causal() & LEFT).dense(2, 1, 8, 8)


def test_lengths_that_the_sizes_leave_open_are_at_least_those_of_the_sequences(
    messages: Messages,
) -> None:
    mask = Padding(lengths=[2, 11])
    assert create_mask(mask.mask_mod(), 2, 1, 11, 11, device="cpu").sum() == 11 * (2 + 11)
    assert_same_mask(mask, Padding(keep=torch.arange(11) < torch.tensor([[2], [11]])))
    with messages.raises(ValueError):
        mask.mask_mod(keys=10)


def test_where_many_documents_start_is_found_in_little_memory() -> None:
    ids = torch.randint(4, (3, 9), generator=torch.Generator().manual_seed(0))
    starts = Documents(ids).starts(3, 9)
    for row, token in torch.cartesian_prod(torch.arange(3), torch.arange(9)).tolist():
        assert starts[row, token] == ids[row].tolist().index(int(ids[row, token]))
    long = Documents(torch.arange(200_000).expand(1, -1) // 3)  # each with each: 40 GB
    assert long.positions(1, 200_000)[0, -3:].tolist() == [2, 0, 1]
