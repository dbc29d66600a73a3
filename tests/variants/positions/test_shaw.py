"""Shaw's clipped relative positions."""

import torch

from tests.messages import Messages
from variants import Dims
from variants.positions import Shaw


def shaw(max_distance: int = 2) -> Shaw:
    """Row c of the table is (c - K, 1): q = (1, 0) reads the clipped distance off it."""
    part = Shaw(Dims(4, 2, 2, 1), max_distance)
    with torch.no_grad():
        part.table.weight[:, 0] = torch.arange(-max_distance, max_distance + 1)
        part.table.weight[:, 1] = 1
    return part


def test_distances_are_clipped_on_both_sides_and_scores_divided_by_the_root_of_the_width() -> None:
    q = torch.tensor([1.0, 0.0]).expand(1, 2, 3, 2)
    k = torch.zeros(1, 2, 6, 2)
    scores = shaw().scores(q, k, torch.tensor([[0, 3, 500]]), torch.tensor([[0, 1, 2, 3, 4, 9]]))
    assert scores.shape == (1, 2, 3, 6)
    expected = [[0, 1, 2, 2, 2, 2], [-2, -2, -1, 0, 1, 2], [-2] * 6]
    for head in range(2):
        torch.testing.assert_close(scores[0, head] * 2**0.5, torch.tensor(expected).float())


def test_the_query_alone_decides_what_a_distance_is_worth() -> None:
    q = torch.stack([torch.tensor([1.0, 0.0]), torch.tensor([0.0, 3.0])]).expand(1, 2, 2, 2)
    index = torch.tensor([[0, 1]])
    scores = shaw().scores(q, q, index, index)[0, 0] * 2**0.5
    torch.testing.assert_close(scores, torch.tensor([[0.0, 1.0], [3.0, 3.0]]))


def test_heads_share_one_table() -> None:
    assert sum(one.numel() for one in Shaw(Dims(8, 4, 2, 1)).parameters()) == 33 * 2


def test_a_distance_of_its_own_is_needed(messages: Messages) -> None:
    with messages.raises(ValueError):
        Shaw(Dims(4, 2, 2, 1), max_distance=0)
