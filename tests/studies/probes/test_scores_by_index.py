"""Scores by index, against counts by hand and against the accuracy of the whole."""

from collections import defaultdict

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from studies.probes.probe import ProbeContext
from studies.probes.scores_by_index import ScoresByIndex
from studies.scoring import FixedSets
from studies.training.evaluation import evaluate
from tests.studies.probes.contexts import context


class RightFrom(nn.Module):
    """Right from an index on, and wrong before it."""

    def __init__(self, task, index: int) -> None:
        super().__init__()
        self.task, self.index = task, index

    def forward(self, tokens: Tensor) -> Tensor:
        answers = self.task.solve(tokens).clamp(min=0)
        answers[:, : self.index] = (answers[:, : self.index] + 1) % self.task.n_classes
        return F.one_hot(answers, self.task.n_classes).float()


def test_each_index_has_its_own_accuracy() -> None:
    made = context({"name": "shift", "k": 2, "alphabet": 4})
    looked = ProbeContext(RightFrom(made.task, 4), made.task, made.config, made.seeds, made.device)

    found = {(one.length, one.bin): one for one in ScoresByIndex().measure(looked)}

    assert [bin for length, bin in found if length == 7] == [2, 3, 4, 5, 6]
    assert [found[7, bin].value for bin in range(2, 7)] == [0, 0, 1, 1, 1]
    assert {one.n for one in found.values()} == {24}


def test_the_indices_together_are_the_accuracy_of_the_test_set() -> None:
    made = context({"name": "shift", "k": 2, "alphabet": 4})
    settings = made.config.evaluation
    sets = FixedSets(made.task, "test", made.seeds, settings.examples, settings.batch_size)
    whole = evaluate(made.model, sets, settings.test_lengths, torch.device("cpu"))
    expected = {one.length: (one.correct, one.n) for one in whole if one.metric == "accuracy"}

    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for one in ScoresByIndex().measure(made):
        sums[one.length][0] += one.correct or 0
        sums[one.length][1] += one.n

    assert {length: tuple(pair) for length, pair in sums.items()} == expected


@pytest.mark.parametrize("task", ["first_last_match", "majority"])
def test_one_answer_a_sequence_has_one_index(task: str) -> None:
    assert {one.bin for one in ScoresByIndex().measure(context(task))} == {0}


def test_the_several_answers_of_a_place_count_together() -> None:
    made = context({"name": "multi_shift", "offsets": 2, "alphabet": 4}, n_classes=8)

    found = [one for one in ScoresByIndex().measure(made) if one.length == 7]

    assert {one.n for one in found if one.bin and one.bin >= 2} == {2 * 24}
