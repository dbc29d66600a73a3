"""Bucket sort: the sequence in order of its symbols."""

import torch

from studies.tasks.bucket_sort import BucketSort


def slow(row: list[int]) -> list[int]:
    left, answers = list(row), []
    while left:
        smallest = min(left)
        left.remove(smallest)
        answers.append(smallest - 1)
    return answers


def test_a_small_example() -> None:
    assert BucketSort().solve(torch.tensor([[3, 1, 2, 1]])).tolist() == [[0, 0, 1, 2]]
    assert slow([3, 1, 2, 1]) == [0, 0, 1, 2]


def test_the_alphabet_changes_the_data() -> None:
    for alphabet in (2, 6, 11):
        drawn = BucketSort(alphabet).sample(torch.Generator().manual_seed(0), 200, 12)
        assert drawn.tokens.unique().tolist() == list(range(1, alphabet + 1))


def test_sampled_and_solved_answers_agree_with_the_slow_solver() -> None:
    for seed, length in enumerate((2, 3, 16, 41)):
        task = BucketSort(alphabet=2 + seed)
        drawn = task.sample(torch.Generator().manual_seed(seed), 40, length)
        answers = [slow(row) for row in drawn.tokens.tolist()]
        assert drawn.targets.tolist() == answers
        assert task.solve(drawn.tokens).tolist() == answers
