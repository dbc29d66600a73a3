"""Scores by index: how often the answer at each place of the output is right."""

from einops import reduce
from torch import Tensor

from studies.probes.probe import Counts, ProbeContext, ScoresByBin
from studies.tasks.task import Batch


class ScoresByIndex(ScoresByBin):
    """Accuracy at each output index, at every tested length, with the index as bin.

    The test sets are those of the scores, so the mean over indices, weighted by `n`, is the
    accuracy at that length. A task with one answer a sequence has index 0 alone; the several
    answers of one place count together. A length that the model refuses has no bins.

    Source: Anil et al. 2022 (arXiv:2207.04901), on errors that begin somewhere along a sequence.
    """

    name = "scores_by_index"
    metrics = ("accuracy",)

    def count(
        self, context: ProbeContext, batch: Batch, scored: Tensor, right: Tensor
    ) -> tuple[Counts, Counts]:
        return _by_index(scored), _by_index(right)


def _by_index(answers: Tensor) -> dict[int, int]:
    """How many answers at each index are true; without those where none is."""
    pattern = {1: "batch -> 1", 2: "batch seq -> seq", 3: "batch seq answers -> seq"}
    counts = reduce(answers.long(), pattern[answers.ndim], "sum")
    return {index: int(count) for index, count in enumerate(counts.tolist()) if count}
