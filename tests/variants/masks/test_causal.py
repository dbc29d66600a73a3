"""The causal mask: alignment, and being recognized."""

import pytest
import torch
from torch import Tensor

from tests.messages import Messages
from variants.masks import Causal, Window


def test_alignment_says_which_query_meets_which_key() -> None:
    first, last = (Causal(align).dense(1, 1, 2, 5)[0, 0].int().tolist() for align in ALIGNMENTS)
    assert first == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]
    assert last == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


ALIGNMENTS = ("first", "last")


def test_more_queries_than_keys_leave_early_rows_empty_when_the_ends_meet() -> None:
    rows = Causal("last").dense(1, 1, 5, 2)[0, 0].int().tolist()
    assert rows == [[0, 0], [0, 0], [0, 0], [1, 0], [1, 1]]


def test_alignments_agree_where_the_lengths_do() -> None:
    square = Causal().dense(1, 1, 4, 4)
    assert all(torch.equal(Causal(align).dense(1, 1, 4, 4), square) for align in ALIGNMENTS)


def test_different_lengths_need_an_alignment(messages: Messages) -> None:
    with messages.raises(ValueError):
        Causal().dense(1, 1, 2, 5)
    with messages.raises(ValueError):
        (Causal() & Window(radius=1)).dense(1, 1, 2, 5)


@pytest.mark.usefixtures("unchecked")
def test_another_alignment_is_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        Causal("middle")  # type: ignore[arg-type]


def test_a_causal_mask_of_ones_own_keeps_its_own_rule() -> None:
    class Strict(Causal):
        def allows(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return key < query

    assert Strict().draw(3) == "...\n#..\n##."
