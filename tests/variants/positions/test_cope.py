"""Contextual positions."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.messages import Messages
from variants import Dims
from variants.positions import CoPE

INDEX = torch.arange(5).unsqueeze(0)


def cope(max_position: int = 4, d_head: int = 2) -> CoPE:
    """Row p of the table is (10 p, 0)."""
    part = CoPE(Dims(d_head, 1, d_head, 1), max_position).double()
    with torch.no_grad():
        part.table[:, 0] = 10.0 * torch.arange(max_position)
    return part


def slow(part: CoPE, q: Tensor, k: Tensor) -> Tensor:
    """The definition, read cell by cell for one causal sequence."""
    d_head, table = q.shape[-1], part.table.detach()
    out = torch.zeros(len(q), len(k)).double()
    for i in range(len(q)):
        for j in range(i + 1):
            logits = [(q[i] @ k[t]).item() / d_head**0.5 for t in range(j, i + 1)]
            place = min(sum(1 / (1 + math.exp(-logit)) for logit in logits), len(table) - 1)
            low = min(int(place), len(table) - 2)
            out[i, j] = q[i] @ table[low].lerp(table[low + 1], place - low)
    return out


@pytest.mark.parametrize("max_position", [2, 4, 64])
def test_scores_follow_the_definition(max_position: int) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 5, 3, generator=generator).double()
    part = CoPE(Dims(3, 1, 3, 1), max_position).double()
    with torch.no_grad():
        part.table.normal_(generator=generator)
    out = part.scores(q.expand(1, 1, 5, 3), k.expand(1, 1, 5, 3), INDEX, INDEX)[0, 0]
    torch.testing.assert_close(out.tril(), slow(part, q, k).tril(), rtol=0, atol=1e-12)


def test_open_gates_count_tokens_and_half_open_ones_half_of_them() -> None:
    q = torch.tensor([1.0, 0.0]).double().expand(1, 1, 5, 2)
    half = cope(9).scores(q, torch.zeros_like(q), INDEX, INDEX)[0, 0, 4]
    assert half.tolist() == pytest.approx([25, 20, 15, 10, 5])
    wide = torch.tensor([100.0, 0.0]).double().expand(1, 1, 5, 2)
    counted = cope(9).scores(q, wide, INDEX, INDEX)[0, 0, 4]
    assert counted.tolist() == pytest.approx([50, 40, 30, 20, 10])
    most = cope(4).scores(q, wide, INDEX, INDEX)[0, 0, 4]
    assert most.tolist() == pytest.approx([30, 30, 30, 20, 10])


def test_padding_and_other_documents_do_not_count() -> None:
    generator = torch.Generator().manual_seed(0)
    part, q = cope(64), torch.randn(1, 1, 7, 2, generator=generator).double()
    # Two pads, a document of three tokens, two pads after it; then two documents.
    alone = part.scores(q[:, :, 2:5], q[:, :, 2:5], INDEX[:, :3], INDEX[:, :3])
    for index in ([0, 0, 0, 1, 2, 2, 2], [0, 1, 0, 1, 2, 0, 1], [0, 0, 0, 1, 2, 3, 4]):
        both = part.scores(q, q, torch.tensor([index]), torch.tensor([index]))
        torch.testing.assert_close(both[:, :, 2:5, 2:5].tril(), alone.tril())


def test_some_queries_may_be_asked_about_at_a_time() -> None:
    part, q = cope(64), torch.randn(1, 1, 5, 2, generator=torch.Generator().manual_seed(0)).double()
    whole = part.scores(q, q, INDEX, INDEX)
    rows = [part.scores(q[:, :, i : i + 2], q, INDEX[:, i : i + 2], INDEX) for i in (0, 2, 3)]
    torch.testing.assert_close(torch.cat([rows[0], rows[1], rows[2][:, :, 1:]], dim=2), whole)


def test_the_gates_learn_through_the_places() -> None:
    part = cope(64)
    q, k = torch.randn(2, 1, 1, 5, 2, generator=torch.Generator().manual_seed(0)).double()
    assert torch.autograd.gradcheck(
        lambda q, k, table: torch.func.functional_call(
            _Scores(part), {"part.table": table}, (q, k)
        ),
        (q.requires_grad_(), k.requires_grad_(), part.table),
    )


class _Scores(torch.nn.Module):
    def __init__(self, part: CoPE) -> None:
        super().__init__()
        self.part = part

    def forward(self, q: Tensor, k: Tensor) -> Any:
        return self.part.scores(q, k, INDEX, INDEX)


def test_a_table_has_two_rows_at_least(messages: Messages) -> None:
    with messages.raises(ValueError):
        CoPE(Dims(2, 1, 2, 1), max_position=1)
