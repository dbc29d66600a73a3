"""Nearest marked: the symbol of the nearest marked token."""

import pytest
import torch

from studies.tasks.nearest_marked import NearestMarked
from tests.messages import Messages

UNSCORED = -100


def slow(row: list[int], alphabet: int) -> list[int]:
    marked = [j for j, token in enumerate(row) if token > alphabet]
    answers = []
    for i in range(len(row)):
        near = [j for j in marked if abs(i - j) == min(abs(i - other) for other in marked)]
        free = i not in marked and len(near) == 1
        answers.append(row[near[0]] - alphabet - 1 if free else UNSCORED)
    return answers


def test_a_small_example() -> None:
    tokens = torch.tensor([[1, 10, 3, 1, 12, 2, 2], [2, 9, 2, 11, 2, 1, 1], [1, 2, 3, 4, 5, 6, 7]])
    answers = [[1, -100, 1, 3, -100, 3, 3], [0, -100, -100, -100, 2, 2, 2], [-100] * 7]
    assert NearestMarked().solve(tokens).tolist() == answers
    assert [slow(row, 8) for row in tokens.tolist()] == answers


def test_a_tie_is_unscored_even_between_equal_symbols() -> None:
    assert NearestMarked().solve(torch.tensor([[9, 1, 9]])).tolist() == [[-100, -100, -100]]


def test_tokens_are_marked_at_the_asked_rate() -> None:
    for probability in (0.05, 0.5):
        task = NearestMarked(mark_probability=probability)
        drawn = task.sample(torch.Generator().manual_seed(0), 1000, 50)
        marked = (drawn.tokens > task.alphabet).double().mean().item()
        assert abs(marked - probability) < 4 * (probability * (1 - probability) / 50_000) ** 0.5


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.5])
def test_some_but_not_all_tokens_are_marked(messages: Messages, probability: float) -> None:
    with messages.raises(ValueError):
        NearestMarked(mark_probability=probability)


def test_every_option_changes_the_data() -> None:
    def data(task: NearestMarked) -> list[list[int]]:
        return task.sample(torch.Generator().manual_seed(0), 30, 12).targets.tolist()

    assert data(NearestMarked()) != data(NearestMarked(alphabet=5))
    assert data(NearestMarked()) != data(NearestMarked(mark_probability=0.3))


def test_sampled_and_solved_answers_agree_with_the_slow_solver() -> None:
    for seed, length in enumerate((2, 3, 16, 41)):
        task = NearestMarked(alphabet=2 + seed, mark_probability=0.1 + 0.1 * seed)
        drawn = task.sample(torch.Generator().manual_seed(seed), 40, length)
        answers = [slow(row, task.alphabet) for row in drawn.tokens.tolist()]
        assert drawn.targets.tolist() == answers
        assert task.solve(drawn.tokens).tolist() == answers
