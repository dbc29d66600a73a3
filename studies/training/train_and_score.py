"""The usual way to do a run: build a model, train it, score it."""

import torch
from torch import nn

from studies.tasks.task import Task
from studies.training.data import trained_lengths
from studies.training.evaluation import evaluate, validation_lengths
from studies.training.loop import Curves, DivergedError, train
from studies.training.models import build_model, width_of
from studies.training.outcome import Measured, Outcome, Work
from studies.training.settings import task_of
from studies.training.watching import Watch


def perform(work: Work) -> Outcome:
    """Train and score one replicate of a config.

    A training that diverges is a result: status "diverged", with the reason and no scores.
    """
    config, task = work.config, task_of(work.config.task)
    model = build_model(config, work.seeds)
    model = model.to(work.device, getattr(torch, config.training.dtype))
    outcome = Outcome(parameters=sum(one.numel() for one in model.parameters()), model=model)
    curves, watch = Curves(config.training.last_step), Watch(model, task, work)
    try:
        watch.before()
        steps = train(
            model,
            task,
            config.training,
            width_of(config),
            work.seeds,
            work.device,
            curves,
            work.after_step,
            watch.during,
        )
        watch.after(steps)
        outcome.scores = [*score(model, task, work), *watch.scores]
        outcome.provenance["steps"] = steps
    except DivergedError as error:
        outcome.status, outcome.reason, outcome.model = "diverged", str(error), None
    outcome.curves = curves.points + watch.points
    outcome.provenance |= {"optimizer": "AdamW", "schedule": config.training.schedule}
    return outcome


def score(model: nn.Module, task: Task, work: Work) -> list[Measured]:
    """Accuracy, exact match, skill and nll at trained lengths (validation) and at tested ones."""
    settings = work.config.evaluation
    trained = validation_lengths(*trained_lengths(task, work.config.training))
    splits = {"validation": trained, "test": list(settings.test_lengths)}
    return [
        measured
        for split, lengths in splits.items()
        for measured in evaluate(
            model,
            task,
            lengths,
            split,
            work.seeds,
            settings.examples,
            settings.batch_size,
            work.device,
            work.between_batches,
            settings.position_draws,
        )
    ]
