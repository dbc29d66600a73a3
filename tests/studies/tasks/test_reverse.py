"""Reverse: the sequence from its end."""

import torch

from studies.tasks.reverse import Reverse


def slow(row: list[int]) -> list[int]:
    return [row[len(row) - 1 - i] - 1 for i in range(len(row))]


def test_a_small_example() -> None:
    assert Reverse().solve(torch.tensor([[3, 1, 4, 2]])).tolist() == [[1, 3, 0, 2]]
    assert slow([3, 1, 4, 2]) == [1, 3, 0, 2]


def test_the_alphabet_changes_the_data() -> None:
    for alphabet in (2, 6, 11):
        drawn = Reverse(alphabet).sample(torch.Generator().manual_seed(0), 200, 12)
        assert drawn.tokens.unique().tolist() == list(range(1, alphabet + 1))


def test_sampled_and_solved_answers_agree_with_the_slow_solver() -> None:
    for seed, length in enumerate((2, 3, 16, 41)):
        task = Reverse(alphabet=2 + seed)
        drawn = task.sample(torch.Generator().manual_seed(seed), 40, length)
        answers = [slow(row) for row in drawn.tokens.tolist()]
        assert drawn.targets.tolist() == answers
        assert task.solve(drawn.tokens).tolist() == answers
