"""What a run is given, and what comes of it: the contract of every way to do a run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from studies.scoring import Measured, Point
from studies.seeds import Seeds
from studies.training.settings import RunConfig


@dataclass(frozen=True)
class Work:
    """One run to be done.

    `config` is everything that its numbers depend on, but for the replicate. `after_step` is to be
    called after each step of training: it counts, and keeps the run ours; `between_batches` every
    few seconds of any other work.
    """

    config: RunConfig
    replicate: int
    device: torch.device
    after_step: Callable[[], None] = lambda: None
    between_batches: Callable[[], None] = lambda: None

    @property
    def seeds(self) -> Seeds:
        """The random streams of the run."""
        return Seeds(self.config.study.seed, self.replicate)


@dataclass
class Outcome:
    """What came of a run. Times are seconds; `peak_bytes` is GPU memory, None on the CPU.

    A function that does runs fills in `status` (done, diverged or not_applicable), `reason`,
    `scores`, `curves`, `parameters` and `provenance`; `model` is what may be saved.
    """

    status: str = "done"
    reason: str | None = None
    scores: list[Measured] = field(default_factory=list[Measured])
    curves: list[Point] = field(default_factory=list[Point])
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int | None = None
    parameters: int | None = None
    provenance: dict[str, Any] = field(default_factory=dict[str, Any])
    model: nn.Module | None = field(default=None, repr=False)

    def columns(self) -> dict[str, Any]:
        """What is stored of it."""
        return {name: value for name, value in vars(self).items() if name != "model"}
