"""Scores by link distance: how often an answer is right, by how far away its evidence lies."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import ClassVar

import torch
from einops import rearrange
from torch import Tensor

from studies.outcome import Measured
from studies.probes.probe import Probe, Scene
from variants.positions import BeyondTableError


class ScoresByDistance(Probe):
    """Accuracy by the distance of the farthest token that an answer needs, with that as bin.

    The links are those that the task tells (`Task.links`); `accuracy_by_distance` at each tested
    length counts the answers whose farthest link is so many tokens away. A task with one answer a
    sequence, or one that tells no links, cannot be asked.

    Source: Liu et al. 2024 (arXiv:2307.03172), on how the place of the evidence decides.

    Args:
        steps: After which steps it is measured during training as well.
    """

    name: ClassVar[str] = "scores_by_distance"

    def __init__(self, steps: tuple[int, ...] = ()) -> None:
        super().__init__(steps)

    def before(self, scene: Scene) -> Iterable[Measured]:
        return ()

    def measure(self, scene: Scene) -> Iterator[Measured]:
        for length in scene.config.evaluation.test_lengths:
            asked, known = Counter[int](), Counter[int]()
            try:
                for batch, scored, right in scene.answered(length):
                    distance = self._distance(scene, batch.tokens, scored)
                    asked.update(distance[scored].tolist())
                    known.update(distance[right].tolist())
            except BeyondTableError:
                continue
            for far, n in sorted(asked.items()):
                name, share = "accuracy_by_distance", known[far] / n
                yield Measured("test", length, name, n, share, known[far], bin=far)

    def _distance(self, scene: Scene, tokens: Tensor, scored: Tensor) -> Tensor:
        links = scene.task.links(tokens)
        if links is None or scored.ndim != 2:
            raise ValueError(
                f"{self.name} needs a task that tells the links of each token's answer; "
                f"{scene.task!r} does not; leave it out of evaluation.probes"
            )
        index = torch.arange(tokens.shape[1])
        query = rearrange(index, "query -> query 1")
        far = (query - rearrange(index, "key -> 1 key")).abs()
        return torch.where(links.cpu(), far, 0).amax(dim=-1).to(scored.device)
