"""Scores by link distance, on tasks whose links are known."""

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from studies.probes.probe import ProbeContext
from studies.probes.scores_by_distance import ScoresByDistance
from tests.messages import Messages
from tests.studies.probes.contexts import context


def test_a_shift_has_all_its_links_at_one_distance() -> None:
    measured = list(ScoresByDistance().measure(context({"name": "shift", "k": 2, "alphabet": 4})))

    assert {(one.length, one.bin, one.n) for one in measured} == {(7, 2, 24 * 5), (10, 2, 24 * 8)}


def test_answers_are_told_apart_by_how_far_they_look() -> None:
    """A model that is right only where the previous occurrence is at most 3 back."""
    made = context({"name": "previous_occurrence", "alphabet": 4})

    class Near(nn.Module):
        def forward(self, tokens: Tensor) -> Tensor:
            answers, every = made.task.solve(tokens).clamp(min=0), made.task.links(tokens)
            assert every is not None
            far = torch.zeros_like(tokens)
            for row in range(len(tokens)):
                for at in range(tokens.shape[1]):
                    links = every[row, at].nonzero().flatten().tolist()
                    far[row, at] = max((abs(at - key) for key in links), default=0)
            wrong = (answers + 1) % made.task.n_classes
            return F.one_hot(torch.where(far > 3, wrong, answers), made.task.n_classes).float()

    looked = ProbeContext(Near(), made.task, made.config, made.seeds, made.device)

    found = {one.bin: one.value for one in ScoresByDistance().measure(looked) if one.length == 10}

    assert set(found.values()) == {0.0, 1.0}
    assert all((value == 1.0) == (far is not None and far <= 3) for far, value in found.items())


def test_distances_share_out_the_answers_of_the_test_set() -> None:
    made = context("nearest_marked")
    scored = Counter[int]()
    for length in (7, 10):
        scored[length] = sum(int(scored.sum()) for _, scored, _ in made.answered(length))

    measured = Counter[int]()
    for one in ScoresByDistance().measure(made):
        measured[one.length] += one.n

    assert measured == scored


@pytest.mark.parametrize("task", ["parity", "first_last_match"])
def test_a_task_that_tells_no_links_of_tokens_is_refused(messages: Messages, task: str) -> None:
    with messages.raises(ValueError):
        list(ScoresByDistance().measure(context(task)))
