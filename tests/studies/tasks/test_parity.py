"""Parity: is the number of 2s odd?"""

import torch

from studies.tasks.parity import Parity


def slow(row: list[int]) -> int:
    odd = 0
    for token in row:
        odd = 1 - odd if token == 2 else odd
    return odd


def test_a_small_example() -> None:
    assert Parity().solve(torch.tensor([[2, 1, 2, 2], [2, 1, 2, 1]])).tolist() == [1, 0]
    assert [slow([2, 1, 2, 2]), slow([2, 1, 2, 1])] == [1, 0]


def test_sampled_and_solved_answers_agree_with_the_slow_solver() -> None:
    for seed, length in enumerate((1, 2, 3, 16, 41)):
        task = Parity()
        drawn = task.sample(torch.Generator().manual_seed(seed), 40, length)
        answers = [slow(row) for row in drawn.tokens.tolist()]
        assert drawn.targets.tolist() == answers
        assert task.solve(drawn.tokens).tolist() == answers
