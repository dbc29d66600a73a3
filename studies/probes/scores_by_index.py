import torch
from einops import rearrange
from torch import Tensor

from studies.probes.probe import ProbeContext, ScoresByBin
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

    def bins(self, context: ProbeContext, batch: Batch, scored: Tensor) -> Tensor:
        if scored.ndim == 1:
            return torch.zeros_like(scored, dtype=torch.long)
        index = torch.arange(scored.shape[1], device=scored.device)
        return (rearrange(index, "seq -> seq 1") if scored.ndim > 2 else index).expand_as(scored)
