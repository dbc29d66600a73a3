"""The model of a run: an encoder made of parts, or what a function of the user's builds."""

import torch
from torch import nn

from registry.build import build_encoder
from registry.errors import Problem
from studies.errors import BrokenModelError
from studies.seeds import Seeds
from studies.training.references import function_of
from studies.training.settings import RunConfig, task_of


def build_model(config: RunConfig, seeds: Seeds) -> nn.Module:
    """Build the model of a run, with the initial weights of a replicate.

    The global generator is seeded for a function of the user's, and left as it was. Options that
    are refused are a ConfigError; what is no module is a BrokenModelError.
    """
    seed = seeds.seed("init")
    if config.model is None:
        assert config.encoder is not None, "a run has an encoder or a model"
        return build_encoder(config.encoder, seed=seed)
    task = task_of(config.task)
    build = function_of(config.model.name)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = build(task.vocab_size, task.n_classes * task.answers, **config.model.options())
    if not isinstance(model, nn.Module):
        rule = f"{config.model.name} builds a torch.nn.Module; got {model!r}"
        raise BrokenModelError([Problem("model", rule, model)])
    return model


def width_of(config: RunConfig) -> int:
    """The width d_model that schedules depend on; 1 where the model tells none."""
    if config.encoder is not None:
        return config.encoder.d_model
    options = {} if config.model is None else config.model.options()
    return int(options.get("d_model", 1))
