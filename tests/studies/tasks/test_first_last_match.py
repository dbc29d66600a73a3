"""First and last: are the two ends the same symbol?"""

import torch

from studies.tasks.first_last_match import FirstLastMatch


def slow(row: list[int]) -> int:
    return 1 if row[0] == row[len(row) - 1] else 0


def test_a_small_example() -> None:
    tokens = torch.tensor([[3, 1, 4, 3], [3, 1, 3, 4]])
    assert FirstLastMatch().solve(tokens).tolist() == [1, 0]
    assert [slow(row) for row in tokens.tolist()] == [1, 0]


def test_no_symbol_is_favoured_among_the_negatives() -> None:
    alphabet = 5
    for length in (2, 9):
        drawn = FirstLastMatch(alphabet).sample(torch.Generator().manual_seed(1), 40_000, length)
        first, last = drawn.tokens[:, 0], drawn.tokens[:, -1]
        for symbol in range(1, alphabet + 1):
            negatives = (drawn.targets == 0) & (first == symbol)
            share = torch.bincount(last[negatives], minlength=alphabet + 1) / negatives.sum()
            error = (0.25 * 0.75 / negatives.sum().item()) ** 0.5
            for other in range(1, alphabet + 1):
                expected = 0.0 if other == symbol else 0.25
                assert abs(share[other].item() - expected) < 4 * error


def test_the_alphabet_changes_the_data() -> None:
    for alphabet in (2, 6, 11):
        drawn = FirstLastMatch(alphabet).sample(torch.Generator().manual_seed(0), 200, 12)
        assert drawn.tokens.unique().tolist() == list(range(1, alphabet + 1))


def test_sampled_and_solved_answers_agree_with_the_slow_solver() -> None:
    for seed, length in enumerate((2, 3, 16, 41)):
        task = FirstLastMatch(alphabet=2 + seed)
        drawn = task.sample(torch.Generator().manual_seed(seed), 40, length)
        answers = [slow(row) for row in drawn.tokens.tolist()]
        assert drawn.targets.tolist() == answers
        assert task.solve(drawn.tokens).tolist() == answers
