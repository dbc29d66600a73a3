"""Train a model once for all runs that look into one and the same one."""

import json
from dataclasses import dataclass, field, replace
from functools import lru_cache

from studies.training.outcome import Outcome, Work
from studies.training.train_and_score import perform

KEPT = 16
"""So many trained models are kept by a worker: small ones, of the replicates of one panel."""


def trained_once(work: Work) -> Outcome:
    """The outcome of training and scoring the model of a run, with the model.

    A training follows from its config, replicate and device alone. So runs that differ only in
    what is done with the trained model, `perform`, may share it: the first of them in a worker
    trains. It is not to be changed.
    """
    config = work.config.model_copy(update={"perform": None})
    told = json.dumps(config.plain(), sort_keys=True)
    return _trained(_Training(told, work.replicate, str(work.device), replace(work, config=config)))


@dataclass(frozen=True)
class _Training:
    config: str
    replicate: int
    device: str
    work: Work = field(compare=False)


@lru_cache(maxsize=KEPT)
def _trained(training: _Training) -> Outcome:
    return perform(training.work)


def forget() -> None:
    """Let go of all models: the next run trains its own."""
    _trained.cache_clear()
