"""Majority: which of two symbols is more frequent?"""

import torch

from studies.tasks.majority import Majority

UNSCORED = -100


def slow(row: list[int]) -> int:
    ones = sum(token == 1 for token in row)
    twos = sum(token == 2 for token in row)
    return UNSCORED if ones == twos else int(twos > ones)


def test_a_small_example() -> None:
    assert Majority().solve(torch.tensor([[2, 1, 2], [1, 1, 2]])).tolist() == [1, 0]
    assert [slow([2, 1, 2]), slow([1, 1, 2]), slow([1, 2])] == [1, 0, -100]


def test_a_tie_is_unscored_and_never_drawn() -> None:
    assert Majority().solve(torch.tensor([[2, 1]])).tolist() == [-100]
    for length in (2, 4, 10):
        drawn = Majority().sample(torch.Generator().manual_seed(0), 500, length)
        assert drawn.targets.min().item() == 0


def test_turning_a_tie_favours_no_place() -> None:
    tokens = Majority().sample(torch.Generator().manual_seed(0), 20_000, 4).tokens
    shares = (tokens == 2).double().mean(dim=0)
    assert ((shares - 0.5).abs() < 4 * 0.5 / 20_000**0.5).all()


def test_sampled_and_solved_answers_agree_with_the_slow_solver() -> None:
    for seed, length in enumerate((1, 2, 3, 16, 41)):
        task = Majority()
        drawn = task.sample(torch.Generator().manual_seed(seed), 40, length)
        answers = [slow(row) for row in drawn.tokens.tolist()]
        assert drawn.targets.tolist() == answers
        assert task.solve(drawn.tokens).tolist() == answers
