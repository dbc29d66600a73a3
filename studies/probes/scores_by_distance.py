import torch
from einops import rearrange
from torch import Tensor

from studies.probes.probe import ProbeContext, ScoresByBin
from studies.tasks.task import Batch


class ScoresByDistance(ScoresByBin):
    """Accuracy by the distance of the farthest token that an answer needs, with that as bin.

    The links are those that the task tells (`Task.links`); `accuracy_by_distance` at each tested
    length counts the answers whose farthest link is so many tokens away. A task with one answer a
    sequence, or one that tells no links, cannot be asked.

    Source: Liu et al. 2024 (arXiv:2307.03172), on how the place of the evidence decides.
    """

    name = "scores_by_distance"
    metrics = ("accuracy_by_distance",)

    def bins(self, context: ProbeContext, batch: Batch, scored: Tensor) -> Tensor:
        links = context.task.links(batch.tokens)
        if links is None or scored.ndim != 2:
            raise ValueError(
                f"{self.name} needs a task that tells the links of each token's answer; "
                f"{context.task!r} does not; leave it out of evaluation.probes"
            )
        index = torch.arange(batch.tokens.shape[1])
        query = rearrange(index, "query -> query 1")
        far = (query - rearrange(index, "key -> 1 key")).abs()
        return torch.where(links.cpu(), far, 0).amax(dim=-1).to(scored.device)
