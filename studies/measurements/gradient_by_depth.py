"""How the gradient of the last layer scales with depth at initialization."""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import nn

from registry.build import build_encoder
from registry.errors import ConfigError, Problem
from studies.scoring import batch_loss
from studies.training.outcome import Measured, Outcome, Work
from studies.training.settings import task_of
from variants.encoder import Encoder


def measure(
    work: Work, depths: Sequence[int] = (2, 4, 8, 16, 32), uniform: bool = True, models: int = 1
) -> Outcome:
    r"""Build the encoder of a run at several depths and look at its gradient, untrained.

    $g(L) = \|\partial \mathcal{L} / \partial W_2\|_F$ for the second matrix of the feed-forward of
    the last of L layers, where $\mathcal{L}$ is the mean cross-entropy of one batch. Theory has
    $g$ independent of L for Post-LN and falling as $L^{-1/2}$ for Pre-LN.

    Metrics at every tested length: `last_gradient`, the mean of $g$ over the models, with the depth
    as bin; `slope`, the exponent a of the line $\log g = a \log L + b$ by least squares.

    Source: Xiong et al. 2020, theorem 1 (arXiv:2002.04745).

    Args:
        work: The run: its encoder but for `n_layers`, its task, `training.batch_size` sequences of
            each of `evaluation.test_lengths`.
        depths: Numbers of layers, two or more.
        uniform: Whether all queries are zero, so that every token attends to all alike, as the
            theory has it.
        models: How many encoders of each depth are drawn, with a batch each.
    """
    _check(work, depths, models)
    outcome = Outcome()
    for length in work.config.evaluation.test_lengths:
        outcome.scores += list(_at(work, length, depths, uniform, models))
    return outcome


def _check(work: Work, depths: Sequence[int], models: int) -> None:
    if work.config.encoder is None or work.config.task is None:
        raise ConfigError([Problem("perform", "gradient_by_depth needs an encoder and a task")])
    if len(set(depths)) < 2 or min(depths) < 1:
        rule = f"a slope needs two numbers of layers or more; got {list(depths)}"
        raise ConfigError([Problem("perform.depths", rule, list(depths))])
    if models < 1:
        rule = f"a mean over models needs one model or more; got {models}"
        raise ConfigError([Problem("perform.models", rule, models)])


def _at(
    work: Work, length: int, depths: Sequence[int], uniform: bool, models: int
) -> Iterator[Measured]:
    examples = work.config.training.batch_size * models
    norms: dict[int, float] = {}
    for depth in depths:
        drawn: list[float] = []
        for model in range(models):
            drawn.append(last_gradient(work, length, depth, uniform, model))
            work.between_batches()
        norms[depth] = math.fsum(drawn) / models
        yield Measured("test", length, "last_gradient", examples, norms[depth], bin=depth)
    yield Measured("test", length, "slope", len(norms), slope(norms))


def last_gradient(work: Work, length: int, n_layers: int, uniform: bool, number: int = 0) -> float:
    """The norm of the gradient of the last feed-forward's second matrix, before any training.

    `number` says which one of the models of this depth is drawn, with its batch.
    """
    config, task = work.config, task_of(work.config.task)
    assert config.encoder is not None
    chosen = config.encoder.model_copy(update={"n_layers": n_layers})
    dtype = getattr(torch, config.training.dtype)
    seed = work.seeds.seed("init", number)
    model = build_encoder(chosen, seed=seed).to(work.device, dtype).eval()
    if uniform:
        attend_to_all_alike(model)
    generator = work.seeds.generator("evaluation", "gradient", length, number)
    batch = task.sample(generator, config.training.batch_size, length)
    (gradient,) = torch.autograd.grad(
        batch_loss(model, batch, work.device), [second_matrix(model.blocks[-1])]
    )
    return gradient.double().norm().item()


def attend_to_all_alike(model: Encoder) -> None:
    """Set all queries to zero: without a bias on the scores, every weight is then the same."""
    for name, parameter in model.named_parameters():
        if ".to_q." in name:
            nn.init.zeros_(parameter)


def second_matrix(block: nn.Module) -> nn.Parameter:
    """The matrix by which a block's feed-forward writes into the residual stream."""
    for name, parameter in block.named_parameters():
        if name.startswith("feedforward.") and name.endswith("to_model.weight"):
            return parameter
    raise ValueError("the last block has no feed-forward; choose another than none")


def slope(norms: Mapping[int, float]) -> float | None:
    r"""The exponent a of $g = c L^a$: least squares over the logarithms; None where a norm is 0.

    >>> round(slope({1: 8.0, 4: 4.0, 16: 2.0}), 6)
    -0.5
    """
    if min(norms.values()) <= 0:
        return None
    x = [math.log(depth) for depth in norms]
    y = [math.log(norm) for norm in norms.values()]
    x_mean, y_mean = math.fsum(x) / len(x), math.fsum(y) / len(y)
    rise = math.fsum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True))
    return rise / math.fsum((a - x_mean) ** 2 for a in x)
