"""What a run costs, told before it runs: counted in the built model, not guessed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from registry.build import threads
from studies.errors import BrokenModelError, model_answers, model_is_built
from studies.training.settings import RunConfig, task_of

if TYPE_CHECKING:
    from torch import nn

SEQUENCES = 2
"""So many sequences are counted; FLOPs a token do not depend on how many."""


@dataclass(frozen=True)
class Costs:
    """What one run costs.

    Args:
        parameters: Those of the built model, each once, however often it is used.
        flops_per_token: Floating-point operations of a forward pass over sequences of the longest
            trained length, divided by their tokens. Matrix products alone are counted, two
            operations for each multiplication with its addition, whatever a mask would spare.
            Training costs about three times as much.
        tokens: That are trained on, without padding: steps × batch size × the mean tokens of a
            sequence.
        steps: Of training, as planned.
        broken: What the model raised where it should have answered, so that FLOPs are not known;
            or what builds it raised, so that nobody knows its parameters either.
    """

    parameters: int | None
    flops_per_token: float | None
    tokens: float
    steps: int
    broken: str = ""


def costs_of(config: RunConfig) -> Costs:
    """What a run that trains costs.

    Raises:
        ConfigError: If its encoder or its function refuses its options.
    """
    parameters, flops, broken = None, None, ""
    try:
        model = _built(config)
        parameters = _parameters(model)
        flops = _flops(model, config)
    except BrokenModelError as error:
        broken = str(error)
    return Costs(parameters, flops, tokens_of(config), steps_of(config), broken)


def parameters_of(config: RunConfig) -> int:
    """How many parameters its model has."""
    return _parameters(_built(config))


def flops_per_token_of(config: RunConfig) -> float:
    """FLOPs of a forward pass at the longest trained length, a token.

    Raises:
        BrokenModelError: If the model raises an error.
    """
    return _flops(_built(config), config)


def tokens_of(config: RunConfig) -> float:
    """How many tokens are trained on: every trained length is drawn equally often."""
    from studies.training.data import trained_lengths

    task, training = task_of(config.task), config.training
    low, high = trained_lengths(task, training)
    mean = sum(task.seq(length) for length in range(low, high + 1)) / (high + 1 - low)
    return training.steps * training.batch_size * mean


def steps_of(config: RunConfig) -> int:
    """Steps of training."""
    return config.training.steps


COUNTED: Mapping[str, Callable[[RunConfig], int | float]] = {
    "parameters": parameters_of,
    "flops_per_token": flops_per_token_of,
    "tokens": tokens_of,
    "steps": steps_of,
}
"""How each cost is counted."""


def _built(config: RunConfig) -> "nn.Module":
    """The model of a run.

    Raises:
        ConfigError: If its encoder or its function refuses its options.
        BrokenModelError: If what builds it raises anything else.
    """
    from studies.seeds import Seeds
    from studies.training.models import build_model

    with model_is_built():
        return build_model(config, Seeds(0, 0))


def _parameters(model: "nn.Module") -> int:
    return sum(one.numel() for one in model.parameters())


@threads()
def _flops(model: "nn.Module", config: RunConfig) -> float:
    import torch

    from registry.inspect import counting

    task = task_of(config.task)
    drawn = torch.Generator().manual_seed(0)
    tokens = task.sample(drawn, SEQUENCES, config.training.train_lengths[1]).tokens
    with torch.random.fork_rng(), torch.no_grad(), counting() as counter, model_answers():
        model.eval()(tokens)
    return counter.get_total_flops() / tokens.numel()
