"""The settings of a run."""

from typing import Any

import pytest
import torch

from registry import ConfigError
from registry.config import hash_of, without_defaults
from studies.training.settings import Training, check_run
from tests.messages import Messages

RUN: dict[str, Any] = {"encoder": {"vocab_size": 9, "n_classes": 8}, "task": "shift"}


def test_training_lengths_may_be_one_length() -> None:
    assert Training(train_lengths=(4, 4)).train_lengths == (4, 4)


def test_what_may_be_left_out_leaves_the_identity_of_a_run_alone() -> None:
    spelled = {
        "training": {"examples": "infinite", "until": None},
        "evaluation": {"checkpoints": 0, "probes": []},
        "model": None,
        "perform": None,
    }

    kept = [without_defaults(check_run({**RUN, **more})) for more in ({}, spelled)]

    assert hash_of(kept[0]) == hash_of(kept[1])


@pytest.mark.parametrize(
    "more",
    [
        {"training": {"examples": 100}},
        {"training": {"until": {"value": 0.9}}},
        {"training": {"until": {}}},
        {"evaluation": {"checkpoints": 1}},
        {"evaluation": {"probes": ["gradient_norms"]}},
    ],
)
def test_whatever_changes_what_is_stored_is_another_run(more: dict[str, Any]) -> None:
    config = check_run({**RUN, **more})

    assert hash_of(without_defaults(config)) != hash_of(without_defaults(check_run(RUN)))
    assert check_run(config.plain()) == config


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"training": {"examples": "some"}}, "training.examples"),
        ({"training": {"until": {"valu": 0.9}}}, "unknown key 'valu'; did you mean 'value'?"),
        (
            {"training": {"d_model": 8}},
            "training.d_model: unknown key 'd_model'; did you mean 'enc",
        ),
        ({"encoder": {"steps": 8}}, "encoder.steps: unknown key 'steps'; did you mean 'training.s"),
        ({"training": {"until": {"value": 1.5}}}, "training.until.value"),
        ({"evaluation": {"probes": ["gradient_nroms"]}}, "did you mean 'gradient_norms'?"),
        ({"evaluation": {"probes": [{"name": "attention", "ofsets": 3}]}}, "unknown key 'ofsets'"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_key(more: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_run({**RUN, **more})

    assert told in str(caught.value)


@pytest.mark.parametrize(("given", "steps"), [(0, 0), (1, 1), (50, 50), (0.05, 10), (0.0, 0)])
def test_a_warmup_is_a_number_of_steps_or_a_share_of_them(given: float, steps: int) -> None:
    training = check_run({**RUN, "training": {"steps": 200, "warmup_steps": given}}).training

    assert training.warmup == steps


@pytest.mark.parametrize("given", [-1, 1.0, 2.5, -0.1])
def test_a_warmup_that_is_neither_is_refused(given: float) -> None:
    with pytest.raises(ConfigError, match="warmup_steps"):
        check_run({**RUN, "training": {"warmup_steps": given}})


def test_what_is_trained_is_not_float16(messages: Messages) -> None:
    """Gradients of 1e-4 have squares of 1e-8, and the smallest number of float16 is 6e-8."""
    assert torch.tensor(1e-4).square().half() == 0

    with messages.raises(ConfigError):
        check_run({"training": {"dtype": "float16", "steps": 1}})
    assert check_run({"training": {"dtype": "float16", "steps": 0}}).training.dtype == "float16"
    assert check_run({"training": {"dtype": "bfloat16"}}).training.dtype == "bfloat16"
