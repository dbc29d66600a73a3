"""Learning: a loss that falls, from a fixed seed, and examples that can be learned by heart."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from registry.conformance.checks import require
from studies.acceptance_checks.check import Layer, Passed, Subject
from studies.scoring import FixedSets, judged, predict
from studies.training.evaluation import evaluate
from studies.training.loop import Curves, train
from studies.training.models import width_of
from studies.training.settings import Training

LAYER = Layer("learning")

FEW = 3
"""So many steps tell whether two trainings go the same way."""


@LAYER.check(
    "weights, dropout or positions are drawn from a generator that nobody seeds",
    "something is kept between two models: a cache, a global, a buffer",
)
def the_same_seed_gives_the_same_losses(subject: Subject) -> Passed:
    """Two models of one seed, trained on the same batches."""
    training = subject.work.config.training.model_copy(update={"steps": FEW})
    first, second = (losses(subject, subject.build(), training) for _ in range(2))
    require(first == second, f"losses of the first {FEW} steps are {first} and then {second}")
    return Passed(f"{FEW} steps to the bit")


@LAYER.check(
    "the optimizer does not hold all parameters, or the rate is 0",
    "the sign of the loss, or targets that do not belong to their inputs",
    "too few steps: raise training.steps before you suspect the model",
)
def the_loss_falls(subject: Subject) -> Passed:
    """The mean of the last eighth of the training lies below that of the first."""
    model, training = subject.build(), subject.work.config.training
    curve = losses(subject, model, training)
    share = max(1, len(curve) // 8)
    first, last = sum(curve[:share]) / share, sum(curve[-share:]) / share
    sets = FixedSets(subject.task, "test", subject.work.seeds, 512, 128)
    [accuracy] = [
        one.value
        for one in evaluate(model, sets, [subject.length], subject.work.device)
        if one.metric == "accuracy"
    ]
    floor = subject.task.floors(subject.length).highest
    told = f"from {first:.3f} to {last:.3f} nats in {training.steps} steps"
    require(last < first, f"the loss went {told}")
    numbers = {"loss_before": first, "loss_after": last, "accuracy": accuracy or 0.0}
    return Passed(f"{told}; accuracy {accuracy:.3f}, a blind guess has {floor:.3f}", numbers)


@LAYER.check(
    "the readout does not see the tokens: a mask, or the wrong place",
    "dropout is so strong that nothing can be kept, or acts in evaluation",
    "a sublayer is not joined to the stream, so depth adds nothing",
    "too few steps: raise perform.overfit_steps",
)
def a_few_examples_are_learned_by_heart(subject: Subject) -> Passed:
    """All answers of a small set become right, in evaluation mode, at a brisk rate."""
    number, steps = subject.overfit_examples, subject.overfit_steps
    settings = {
        **subject.work.config.training.model_dump(),
        "examples": number,
        "steps": steps,
        "learning_rate": subject.overfit_rate,
        "schedule": "constant",
        "train_lengths": (subject.length, subject.length),
    }
    model, task = subject.build(), subject.task
    pool = task.sample(
        subject.work.seeds.generator("data", "pool", subject.length), number, subject.length
    )

    def known() -> float:
        model.eval()
        targets = pool.targets.to(subject.work.device)
        scored, right = judged(predict(model, pool, subject.work.device), targets)
        model.train()
        return right.sum().item() / scored.sum().item()

    def by_heart(step: int) -> bool:
        return step % 20 == 0 and known() == 1

    taken = _trained(subject, model, Training(**settings), by_heart)[0]
    share = known()
    require(share > 0.98, f"after {taken} steps {share:.2f} of {number} answers are right")
    numbers = {"overfit_accuracy": share, "overfit_steps": float(taken)}
    return Passed(f"{share:.2f} of {number} right after {taken} steps", numbers)


def losses(subject: Subject, model: nn.Module, training: Training) -> list[float]:
    """The training curve."""
    return _trained(subject, model, training, lambda step: False)[1]


def _trained(
    subject: Subject, model: nn.Module, training: Training, watch: Callable[[int], bool]
) -> tuple[int, list[float]]:
    curves, work = Curves(training.steps), subject.work
    told: dict[str, Any] = {"after_step": work.after_step, "watch": watch}
    width = width_of(work.config)
    with torch.enable_grad():
        steps = train(model, subject.task, training, width, work.seeds, work.device, curves, **told)
    return steps, [point.value for point in curves.points if point.metric == "loss"]
