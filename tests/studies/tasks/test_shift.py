"""Shift: what stood k positions earlier."""

import pytest
import torch

from studies.tasks.shift import Shift
from tests.messages import Messages

UNSCORED = -100


def slow(row: list[int], k: int) -> list[int]:
    return [UNSCORED if i < k else row[i - k] - 1 for i in range(len(row))]


def test_a_small_example() -> None:
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    assert Shift(k=2).solve(tokens).tolist() == [[-100, -100, 2, 0, 3]]
    assert slow([3, 1, 4, 1, 5], k=2) == [-100, -100, 2, 0, 3]


def test_a_shift_beyond_the_sequence_scores_nothing() -> None:
    assert Shift(k=5).solve(torch.tensor([[3, 1]])).tolist() == [[-100, -100]]


def test_the_answer_is_not_the_token_itself() -> None:
    task = Shift(k=1)
    drawn = task.sample(torch.Generator().manual_seed(0), 500, 20)
    scored = drawn.targets != UNSCORED
    copied = (drawn.tokens - 1 == drawn.targets)[scored].double().mean().item()
    assert abs(copied - 1 / 8) < 0.015
    assert scored.sum().item() == 500 * 19


@pytest.mark.parametrize("k", [0, -1])
def test_a_shift_looks_back(messages: Messages, k: int) -> None:
    with messages.raises(ValueError):
        Shift(k=k)


def test_every_option_changes_the_data() -> None:
    def data(task: Shift) -> list[list[int]]:
        drawn = task.sample(torch.Generator().manual_seed(0), 30, 12)
        return drawn.tokens.tolist() + drawn.targets.tolist()

    assert data(Shift(k=2)) != data(Shift(k=3)) != data(Shift(k=3, alphabet=5))
    wide = Shift(alphabet=11).sample(torch.Generator().manual_seed(0), 200, 12)
    assert wide.tokens.unique().tolist() == list(range(1, 12))


def test_sampled_and_solved_answers_agree_with_the_slow_solver() -> None:
    for seed, length in enumerate((4, 5, 17, 40)):
        task = Shift(k=1 + seed, alphabet=3 + seed)
        drawn = task.sample(torch.Generator().manual_seed(seed), 40, length)
        answers = [slow(row, task.k) for row in drawn.tokens.tolist()]
        assert drawn.targets.tolist() == answers
        assert task.solve(drawn.tokens).tolist() == answers
