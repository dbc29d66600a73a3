"""Randomness: every stream follows from (study seed, replicate, purpose), and from nothing else."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from registry.build import seed_of

if TYPE_CHECKING:
    import torch


Purpose = Literal["data", "init", "order", "dropout", "positions", "evaluation"]


@dataclass(frozen=True)
class Seeds:
    """The random streams of one run.

    Runs of one replicate share their streams, whatever their arm: they start from the same
    weights where they have the same parameters, and see the same data in the same order. Worker,
    time and order of the runs play no part.
    """

    study: int
    replicate: int

    def seed(self, purpose: Purpose, *index: object) -> int:
        """The seed of a stream, or of its element at an index."""
        return seed_of("study", self.study, self.replicate, purpose, *index)

    def generator(self, purpose: Purpose, *index: object) -> "torch.Generator":
        """A generator on the CPU for a stream, or for its element at an index."""
        import torch

        return torch.Generator().manual_seed(self.seed(purpose, *index))
