"""Previous occurrence: what followed the last time."""

import torch

from studies.tasks.previous_occurrence import PreviousOccurrence

UNSCORED = -100


def slow(row: list[int]) -> list[int]:
    answers = []
    for i, token in enumerate(row):
        earlier = [j for j in range(i) if row[j] == token]
        answers.append(row[max(earlier) + 1] - 1 if earlier else UNSCORED)
    return answers


def test_a_small_example() -> None:
    tokens = torch.tensor([[1, 2, 1, 3, 1, 1]])
    answers = [-100, -100, 1, -100, 2, 0]
    assert PreviousOccurrence().solve(tokens).tolist() == [answers]
    assert slow([1, 2, 1, 3, 1, 1]) == answers


def test_the_alphabet_changes_the_data() -> None:
    for alphabet in (2, 6, 11):
        drawn = PreviousOccurrence(alphabet).sample(torch.Generator().manual_seed(0), 200, 12)
        assert drawn.tokens.unique().tolist() == list(range(1, alphabet + 1))


def test_sampled_and_solved_answers_agree_with_the_slow_solver() -> None:
    for seed, length in enumerate((2, 3, 16, 41)):
        task = PreviousOccurrence(alphabet=2 + seed)
        drawn = task.sample(torch.Generator().manual_seed(seed), 40, length)
        answers = [slow(row) for row in drawn.tokens.tolist()]
        assert drawn.targets.tolist() == answers
        assert task.solve(drawn.tokens).tolist() == answers
