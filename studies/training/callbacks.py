"""What is looked at while a model trains: checkpoints, the criterion of fit, probes.

Looking changes nothing: the model is left in training mode, and no random stream of the training
is drawn from. Where nothing is asked for, nothing is done.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import nn

from studies.probes.probe import Probe, ProbeContext
from studies.scoring import FixedSets
from studies.seeds import Seeds
from studies.tasks.task import Task
from studies.training.data import trained_lengths
from studies.training.evaluation import MEASURES, evaluate, validation_lengths
from studies.training.outcome import Measured, Point, Work
from studies.training.settings import Training, probe_of

LOOKS = 50
"""About so often the criterion is looked at over `training.steps`, unless told otherwise."""


@dataclass
class StoppingCriterion:
    """Watches whether a training meets the criterion `training.until`.

    The mean of its metric over trained lengths is looked at on sequences of their own. `step` is
    the first look at which it was met; `points` are all looks.
    """

    task: Task
    training: Training
    seeds: Seeds
    device: torch.device
    step: int | None = None
    points: list[Point] = field(default_factory=list[Point])

    def due(self, step: int) -> bool:
        """Is it looked at after this step?"""
        until = self.training.until
        if until is None or self.step is not None:
            return False
        every = until.every or max(1, self.training.steps // LOOKS)
        return step % every == 0 or step == self.training.last_step

    def look(self, model: nn.Module, step: int) -> bool:
        """Look; is the criterion met, and training to end here?"""
        until = self.training.until
        assert until is not None
        sets = FixedSets(self.task, "fit", self.seeds, until.examples, until.examples)
        lengths = validation_lengths(*trained_lengths(self.task, self.training))
        measured = evaluate(model, sets, lengths, self.device)
        found = [one.value for one in measured if one.metric == until.metric]
        value = math.fsum(one or 0.0 for one in found) / len(found)
        self.points.append(Point(step, f"fit.{until.metric}", value))
        if value >= until.value:
            self.step = step
        return until.stop and self.step is not None

    def measured(self, ended: int | None) -> list[Measured]:
        """Steps to fit, a censored time: `correct` is 1 where it was met, else 0 at the end.

        A training that diverged (None) never gets there, however long it is.
        """
        if self.training.until is None:
            return []
        longest, diverged = self.training.train_lengths[1], ended is None
        end = self.training.last_step if ended is None else ended
        met = self.step is not None and not diverged
        step = float(self.step or end) if met else float(end)
        return [Measured("train", longest, "steps_to_fit", 1, step, int(met), imputed=diverged)]


def checkpoints(steps: int, count: int) -> list[int]:
    """Steps that cut a training into equal parts, without its end."""
    return sorted({round(steps * number / (count + 1)) for number in range(1, count + 1)} - {0})


class Callbacks:
    """Looks at a model before, during and after its training."""

    def __init__(self, model: nn.Module, task: Task, work: Work) -> None:
        training, evaluation = work.config.training, work.config.evaluation
        self.model, self.task, self.work = model, task, work
        self.criterion = StoppingCriterion(task, training, work.seeds, work.device)
        self.checkpoints = checkpoints(training.steps, evaluation.checkpoints)
        self.context = ProbeContext(model, task, work.config, work.seeds, work.device)
        self.probes: list[Probe] = [probe_of(chosen) for chosen in evaluation.probes]
        self.points: list[Point] = []
        self.scores: list[Measured] = []

    def before(self) -> None:
        """Look at the model as it was initialized."""
        with self._aside():
            for probe in self.probes:
                self._keep(probe.before(self.context), step=0)

    def during(self, step: int) -> bool:
        """Look after a step; True ends the training."""
        due = [probe for probe in self.probes if step in probe.steps]
        if not due and step not in self.checkpoints and not self.criterion.due(step):
            return False
        with self._aside():
            for probe in due:
                self._keep(probe.during(self.context, step), step)
            if step in self.checkpoints:
                self._check(step)
            return self.criterion.due(step) and self.criterion.look(self.model, step)

    def after(self, step: int) -> None:
        """Look at the trained model, whose last step this was."""
        with self._aside():
            for probe in self.probes:
                found = list(probe.after(self.context))
                self.scores += found
                self._keep(found, step)
        self.scores += self.criterion.measured(step)
        self.points += self.criterion.points

    def _check(self, step: int) -> None:
        evaluation, work = self.work.config.evaluation, self.work
        sizes = evaluation.checkpoint_examples, evaluation.batch_size
        sets, lengths = FixedSets(self.task, "test", work.seeds, *sizes), evaluation.test_lengths
        found = evaluate(self.model, sets, lengths, work.device, work.between_batches)
        self._keep((one for one in found if MEASURES[one.metric].at_checkpoints), step)

    def _keep(self, found: Iterable[Measured], step: int) -> None:
        """Keep what was measured as points of curves."""
        for one in found:
            place = "" if one.bin is None else f"[{one.bin}]"
            if one.value is not None:
                self.points.append(Point(step, f"{one.metric}{place}@{one.length}", one.value))

    @contextmanager
    def _aside(self) -> Iterator[None]:
        training = self.model.training
        with torch.random.fork_rng(devices=[]):
            self.model.eval()
            yield
        self.model.train(training)
