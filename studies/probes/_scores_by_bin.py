"""Scores by bin: how often an answer is right, counted apart for answers of different kinds."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from torch import Tensor

from studies.probes.probe import Probe, Scene
from studies.tasks.task import Batch
from studies.training.outcome import Measured
from variants.positions import BeyondTableError

Counts = Mapping[int, int]


class ScoresByBin(Probe):
    """Accuracy at every tested length, apart for each bin that an answer may be in.

    A length that the model refuses has no bins. Before the first step nothing is measured.
    """

    metric: ClassVar[str]

    @abstractmethod
    def count(
        self, scene: Scene, batch: Batch, scored: Tensor, right: Tensor
    ) -> tuple[Counts, Counts]:
        """How many answers of a batch are in each bin: of the scored ones, of the right ones."""

    def before(self, scene: Scene) -> Iterable[Measured]:
        return ()

    def measure(self, scene: Scene) -> Iterator[Measured]:
        for length in scene.config.evaluation.test_lengths:
            asked, known = Counter[int](), Counter[int]()
            try:
                for batch, scored, right in scene.answered(length):
                    of_scored, of_right = self.count(scene, batch, scored, right)
                    asked.update(of_scored)
                    known.update(of_right)
            except BeyondTableError:
                continue
            for at, n in sorted(asked.items()):
                share = known[at] / n
                yield Measured("test", length, self.metric, n, share, known[at], bin=at)
