"""Dense and Documents: tensors whose sizes must be meant."""

import pytest
import torch

from tests.messages import Messages
from variants.masks import Dense, Documents


def test_three_axes_are_always_the_batch_even_where_batch_equals_heads() -> None:
    one, other = torch.eye(3) > 0, torch.ones(3, 3) > 0
    cells = Dense(torch.stack([one, other])).dense(2, 2, 3, 3).expand(2, 2, 3, 3)
    for head in range(2):
        assert torch.equal(cells[0, head], one)
        assert torch.equal(cells[1, head], other)


def test_one_mask_a_head_has_a_batch_axis_of_one() -> None:
    one, other = torch.eye(3) > 0, torch.ones(3, 3) > 0
    cells = Dense(torch.stack([one, other]).unsqueeze(0)).dense(2, 2, 3, 3).expand(2, 2, 3, 3)
    for batch in range(2):
        assert torch.equal(cells[batch, 0], one)
        assert torch.equal(cells[batch, 1], other)


@pytest.mark.parametrize("shape", [(4, 3, 3), (2, 3, 3, 3), (3, 1), (8, 8), (3, 4)])
def test_a_tensor_of_other_sizes_is_refused(messages: Messages, shape: tuple[int, ...]) -> None:
    mask = Dense(torch.ones(shape) > 0)
    with messages.raises(ValueError):
        mask.dense(2, 2, 3, 3)


@pytest.mark.parametrize("shape", [(2, 5), (2, 1, 5), (2, 1, 1, 5), (4, 5, 5), (8, 5, 5)], ids=str)
def test_a_tensor_of_other_sizes_is_told_what_it_may_be(
    messages: Messages, shape: tuple[int, ...]
) -> None:
    with messages.raises(ValueError):
        Dense(torch.ones(shape) > 0).dense(2, 4, 5, 5)


@pytest.mark.parametrize("shape", [(3,), (1, 1, 1, 3, 3)])
def test_a_tensor_of_another_rank_is_refused(messages: Messages, shape: tuple[int, ...]) -> None:
    with messages.raises(ValueError):
        Dense(torch.ones(shape) > 0)


def test_documents_of_other_sizes_are_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        Documents(torch.zeros(2, 3, dtype=torch.long)).dense(4, 1, 3, 3)
    with messages.raises(ValueError):
        Documents(torch.zeros(2, 3, dtype=torch.long)).dense(2, 1, 5, 5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_mask_of_numbers_is_refused(messages: Messages, dtype: torch.dtype) -> None:
    with messages.raises(TypeError):
        Dense(torch.ones(3, 3, dtype=dtype))


@pytest.mark.usefixtures("unchecked")
def test_documents_are_told_by_whole_numbers_of_two_axes(messages: Messages) -> None:
    with messages.raises(TypeError):
        Documents(torch.zeros(2, 3))
    with messages.raises(TypeError):
        Documents([[0, 0, 1]])  # type: ignore[arg-type]
    with messages.raises(ValueError):
        Documents(torch.zeros(3, dtype=torch.long))
