"""Training: one length a batch, stopped at the first number that is lost."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from studies.probes.probe import LAYER
from studies.scoring import Point, batch_loss, hooked
from studies.seeds import Seeds
from studies.tasks.task import Task
from studies.training.data import batches
from studies.training.settings import Training

CURVE_POINTS = 50
"""About so many points of each training curve are kept; a point is a mean over its steps."""


class DivergedError(Exception):
    """A loss or gradient stopped being finite; the message names the step and the tensor."""


@dataclass
class Curves:
    """Training curves, thinned to about `CURVE_POINTS` points each."""

    steps: int
    points: list[Point] = field(default_factory=list[Point])
    _open: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, step: int, **metrics: float) -> None:
        """Note the metrics of a step."""
        for metric, value in metrics.items():
            self._open.setdefault(metric, []).append(value)
        if step % max(1, self.steps // CURVE_POINTS) == 0 or step == self.steps:
            self.close(step)

    def close(self, step: int) -> None:
        """End the current point at this step."""
        for metric, values in self._open.items():
            self.points.append(Point(step, metric, math.fsum(values) / len(values)))
        self._open = {}


def train(
    model: nn.Module,
    task: Task,
    config: Training,
    d_model: int,
    seeds: Seeds,
    device: torch.device,
    curves: Curves,
    after_step: Callable[[], None] = lambda: None,
    watch: Callable[[int], bool] = lambda step: False,
) -> int:
    """Train a model in place with AdamW; return the last step.

    The loss is the cross-entropy averaged over the scored answers of a batch. Weight decay acts on
    matrices alone. Metrics go to `curves` even if training ends early. `watch` is told each step
    after it, and ends the training by True. Steps beyond `config.steps`, which a criterion of fit
    may allow, go on at the rate of the last one. The first loss or gradient that is not finite is a
    DivergedError; for a loss it names the layer whose activations were lost first.
    """
    model.train()
    trained = {name: one for name, one in model.named_parameters() if one.requires_grad}
    groups = parameter_groups(trained.values(), config.weight_decay)
    optimizer = torch.optim.AdamW(groups, lr=1.0, fused=True)
    positions = torch.Generator(device).manual_seed(seeds.seed("positions"))
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seeds.seed("dropout"))
        step = 0
        for step, batch in enumerate(batches(task, config, seeds), start=1):
            rate = rate_at(step, config, d_model)
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = batch_loss(model, batch, device, positions)
            run = partial(batch_loss, model, batch, device, positions)
            value = finite(loss, step, lambda run=run: place_of(first_nonfinite_module(model, run)))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = gradient_norm(trained, config.clip_norm, step)
            optimizer.step()
            curves.add(step, loss=value, gradient_norm=norm, learning_rate=rate)
            after_step()
            if watch(step):
                break
    curves.close(step)
    return step


def rate_at(step: int, config: Training, d_model: int) -> float:
    r"""The learning rate of a step; steps count from 1, and no step has rate 0.

    All schedules but noam rise linearly over the warm-up, to `learning_rate` at its last step.
    Then `constant` stays there, `linear` and `cosine` fall to `final_rate` times it at the last
    step, and stay there beyond it. `noam` is
    $learning\_rate \cdot d_{model}^{-1/2} \min(s^{-1/2}, s \cdot w^{-3/2})$ for step s and warm-up
    w, so there `learning_rate` is a factor, not the peak.

    Source: Vaswani et al. 2017, equation 3 (arXiv:1706.03762), for noam; Loshchilov and Hutter
    2017 (arXiv:1608.03983), for cosine.
    """
    rate, warmup = config.learning_rate, config.warmup
    if config.schedule == "noam":
        warm = max(warmup, 1)
        return rate * d_model**-0.5 * min(step**-0.5, step * warm**-1.5)
    if step <= warmup:
        return rate * step / warmup
    if config.schedule == "constant":
        return rate
    done = min((step - warmup) / max(config.steps - warmup, 1), 1.0)
    fallen = done if config.schedule == "linear" else (1 - math.cos(math.pi * done)) / 2
    return rate * (1 - (1 - config.final_rate) * fallen)


def parameter_groups(
    parameters: Iterable[nn.Parameter], weight_decay: float
) -> list[dict[str, Any]]:
    """Matrices, which decay, and the other parameters, which do not."""
    trained = list(parameters)
    return [
        {"params": [one for one in trained if one.ndim >= 2], "weight_decay": weight_decay},
        {"params": [one for one in trained if one.ndim < 2], "weight_decay": 0.0},
    ]


def gradient_norm(
    parameters: Mapping[str, nn.Parameter], clip_norm: float | None, step: int
) -> float:
    """The norm of the whole gradient, which is then clipped to `clip_norm`.

    A DivergedError, where it is not finite, names the first parameter at fault.
    """
    gradients = {name: one.grad for name, one in parameters.items() if one.grad is not None}
    total = nn.utils.get_total_norm(gradients.values())
    norm = total.item()
    if not math.isfinite(norm):
        lost = (name for name, gradient in gradients.items() if not gradient.isfinite().all())
        where = next((f"the gradient of {name}" for name in lost), "the norm of the gradient")
        raise DivergedError(f"step {step}: {where} is not finite")
    if clip_norm is not None:
        nn.utils.clip_grads_with_norm_(parameters.values(), clip_norm, total)
    return norm


def finite(loss: Tensor, step: int, where: Callable[[], str] = lambda: "") -> float:
    """The value of a loss; a DivergedError if it is not finite, which ends with `where`."""
    value = loss.item()
    if not math.isfinite(value):
        raise DivergedError(f"step {step}: the loss is not finite ({value}){where()}")
    return value


def first_nonfinite_module(model: nn.Module, run: Callable[[], object]) -> str | None:
    """The path of the first module whose output is not finite while `run` calls the model.

    Modules inside others answer first, so it is the innermost one at fault; None where none is.
    """
    lost: list[str] = []
    paths = {module: path for path, module in model.named_modules()}

    def look(module: nn.Module, given: Any, output: Any) -> None:
        floats = isinstance(output, Tensor) and output.is_floating_point()
        if floats and not lost and not output.isfinite().all():
            lost.append(paths[module])

    with torch.no_grad(), hooked(paths, look):
        run()
    return lost[0] if lost else None


def place_of(path: str | None) -> str:
    """The module as the end of a sentence: its layer, and its path."""
    if path is None:
        return ""
    layer = LAYER.search(path)
    where = f"layer {layer[1]} ({path})" if layer else path or "the model"
    return f"; the first activations that are not finite are those of {where}"
