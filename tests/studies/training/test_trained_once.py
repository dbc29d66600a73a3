"""One training for the runs that share it, and one of its own for each replicate."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from studies.training.execute import forget, trained_once
from studies.training.outcome import Outcome, Work
from studies.training.settings import check_run


@pytest.fixture(autouse=True)
def _alone() -> Any:
    forget()
    yield
    forget()


def work(replicate: int = 0, steps: int = 0, choice: str = "true") -> Work:
    perform = {"name": "studies.links.effects:measure", "choice": choice}
    encoder = {"d_model": 8, "n_heads": 1, "n_layers": 1, "vocab_size": 9, "n_classes": 8}
    config: dict[str, Any] = {
        "perform": perform,
        "encoder": {**encoder, "readout": "tokens"},
        "task": "shift",
        "training": {"steps": steps, "train_lengths": [4, 4]},
        "evaluation": {"test_lengths": [4], "examples": 8},
    }
    return Work(check_run(config), replicate, torch.device("cpu"))


def first(outcome: Outcome) -> Any:
    return next(iter(outcome.model.parameters())).detach()  # type: ignore[union-attr]


def test_runs_that_do_other_things_with_a_model_share_it() -> None:
    assert trained_once(work(choice="true")).model is trained_once(work(choice="top")).model


def test_each_replicate_and_each_training_has_a_model_of_its_own() -> None:
    own, other, longer = (trained_once(one) for one in (work(), work(1), work(steps=1)))

    assert not torch.equal(first(own), first(other))
    assert longer.model is not own.model


def test_an_untrained_control_starts_from_the_weights_of_the_trained_one() -> None:
    """Before its first step the trained model is the control: they are of one seed."""
    control, still = trained_once(work()), trained_once(_at_rate_zero(work(steps=1)))

    assert torch.equal(first(control), first(still))


def _at_rate_zero(one: Work) -> Work:
    training = one.config.training.model_copy(update={"learning_rate": 0.0, "weight_decay": 0.0})
    return replace(one, config=one.config.model_copy(update={"training": training}))
