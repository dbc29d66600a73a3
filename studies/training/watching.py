"""What is looked at while a model trains: checkpoints, the criterion of fit, probes.

Looking changes nothing: the model is left in training mode, and no random stream of the training
is drawn from. Where nothing is asked for, nothing is done.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from studies.probes.probe import Probe, Scene
from studies.tasks.task import Task
from studies.training.evaluation import evaluate
from studies.training.fit import Fit
from studies.training.outcome import Measured, Point, Work
from studies.training.settings import probe_of

CHECKED = ("accuracy", "skill", "nll")
"""The metrics whose values at checkpoints are kept."""


def checkpoints(steps: int, count: int) -> list[int]:
    """Steps that cut a training into equal parts, without its end."""
    return sorted({round(steps * number / (count + 1)) for number in range(1, count + 1)} - {0})


class Watch:
    """Looks at a model before, during and after its training."""

    def __init__(self, model: nn.Module, task: Task, work: Work) -> None:
        training, evaluation = work.config.training, work.config.evaluation
        self.model, self.task, self.work = model, task, work
        self.fit = Fit(task, training, work.seeds, work.device)
        self.checkpoints = checkpoints(training.steps, evaluation.checkpoints)
        self.probes: list[Probe] = [probe_of(chosen) for chosen in evaluation.probes]
        self.points: list[Point] = []
        self.scores: list[Measured] = []

    @property
    def scene(self) -> Scene:
        """What a probe sees."""
        config, work = self.work.config, self.work
        return Scene(self.model, self.task, config, work.seeds, work.device)

    def before(self) -> None:
        """Look at the model as it was initialized."""
        with self._aside():
            for probe in self.probes:
                self._keep(probe.before(self.scene), step=0)

    def during(self, step: int) -> bool:
        """Look after a step; True ends the training."""
        due = [probe for probe in self.probes if step in probe.steps]
        if not due and step not in self.checkpoints and not self.fit.due(step):
            return False
        with self._aside():
            for probe in due:
                self._keep(probe.during(self.scene, step), step)
            if step in self.checkpoints:
                self._check(step)
            return self.fit.due(step) and self.fit.look(self.model, step)

    def after(self, step: int) -> None:
        """Look at the trained model, whose last step this was."""
        with self._aside():
            for probe in self.probes:
                found = list(probe.after(self.scene))
                self.scores += found
                self._keep(found, step)
        self.scores += self.fit.measured(step)
        self.points += self.fit.points

    def _check(self, step: int) -> None:
        evaluation, work = self.work.config.evaluation, self.work
        for one in evaluate(
            self.model,
            self.task,
            evaluation.test_lengths,
            "test",
            work.seeds,
            evaluation.checkpoint_examples,
            evaluation.batch_size,
            work.device,
            work.between_batches,
        ):
            if one.metric in CHECKED and one.value is not None:
                self.points.append(Point(step, f"{one.metric}@{one.length}", one.value))

    def _keep(self, found: Iterable[Measured], step: int) -> None:
        """Keep what a probe measured as points of curves."""
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
