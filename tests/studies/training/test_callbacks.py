"""What is looked at while a model trains, and that looking changes nothing."""

from typing import Any

import pytest
import torch
from torch import nn

from studies.seeds import Seeds
from studies.training.callbacks import StoppingCriterion, checkpoints
from studies.training.execute import execute
from studies.training.outcome import Outcome
from studies.training.settings import Training, Until, check_run, task_of

CPU = torch.device("cpu")
RUN: dict[str, Any] = {
    "encoder": {
        "vocab_size": 4, "n_classes": 3, "d_model": 16, "n_heads": 2, "n_layers": 2,
        "dropout": 0.1, "position": "rope",
    },
    "task": {"name": "shift", "k": 1, "alphabet": 3},
    "training": {"steps": 12, "batch_size": 8, "train_lengths": [2, 6], "warmup_steps": 2},
    "evaluation": {"test_lengths": [6, 9], "examples": 16},
}  # fmt: skip


def run(**more: dict[str, Any]) -> Outcome:
    roots = {root: {**RUN.get(root, {}), **more.get(root, {})} for root in (*RUN, *more)}
    return execute(check_run(roots), 0, CPU)


def curve(outcome: Outcome, metric: str) -> dict[int, float]:
    return {point.step: point.value for point in outcome.curves if point.metric == metric}


@pytest.fixture(scope="module")
def plain() -> Outcome:
    return run()


def test_checkpoints_cut_a_training_into_equal_parts() -> None:
    assert checkpoints(600, 3) == [150, 300, 450]
    assert checkpoints(600, 0) == []
    assert checkpoints(2, 5) == [1, 2]
    assert checkpoints(0, 5) == []


def test_checkpoints_are_scored_at_every_tested_length() -> None:
    outcome = run(evaluation={"checkpoints": 2, "checkpoint_examples": 8})

    for metric in ("accuracy@6", "accuracy@9", "skill@9", "nll@6"):
        assert list(curve(outcome, metric)) == [4, 8]


def test_looking_changes_no_number(plain: Outcome) -> None:
    looked = run(
        training={"until": {"value": 1.0, "stop": False, "every": 2}},
        evaluation={
            "checkpoints": 5,
            "probes": [
                {"name": "gradient_norms", "steps": [3, 4]},
                {"name": "attention", "steps": [5]},
                "activation_scale", "scores_by_index", "scores_by_distance",
                "symmetries",
            ],
        },
    )  # fmt: skip

    added = {"steps_to_fit", "permutation", "reflection"}
    kept = [one for one in looked.scores if one.bin is None and one.metric not in added]
    assert kept == plain.scores
    assert curve(looked, "loss") == curve(plain, "loss")


def test_training_ends_where_the_criterion_is_first_met(plain: Outcome) -> None:
    outcome = run(training={"until": {"value": 0.01, "every": 5}})

    [steps] = [one for one in outcome.scores if one.metric == "steps_to_fit"]
    assert (steps.value, steps.correct, steps.split) == (5.0, 1, "train")
    assert outcome.provenance["steps"] == 5
    assert max(curve(outcome, "loss")) == 5
    assert list(curve(outcome, "fit.accuracy")) == [5]


def test_a_criterion_that_is_not_met_ends_at_the_cap_as_a_censored_time() -> None:
    outcome = run(training={"steps": 4, "until": {"value": 1.0, "cap": 1.5, "every": 4}})

    [steps] = [one for one in outcome.scores if one.metric == "steps_to_fit"]
    assert (steps.value, steps.correct) == (6.0, 0)
    assert list(curve(outcome, "fit.accuracy")) == [4, 6]


def test_a_criterion_that_does_not_stop_is_noted_and_training_goes_on(plain: Outcome) -> None:
    outcome = run(training={"until": {"value": 0.01, "every": 5, "stop": False}})

    [steps] = [one for one in outcome.scores if one.metric == "steps_to_fit"]
    assert (steps.value, steps.correct) == (5.0, 1)
    assert outcome.provenance["steps"] == 12
    assert [one for one in outcome.scores if one.metric != "steps_to_fit"] == plain.scores


def test_the_cap_counts_where_training_may_stop() -> None:
    assert Training(steps=10).last_step == 10
    assert Training(steps=10, until=Until(cap=2.5)).last_step == 25
    assert Training(steps=10, until=Until(stop=False)).last_step == 10


def test_a_model_is_measured_without_a_step() -> None:
    outcome = run(training={"steps": 0}, evaluation={"probes": ["gradient_norms"]})

    assert outcome.provenance["steps"] == 0
    assert curve(outcome, "loss") == {}
    assert {one.metric for one in outcome.scores} >= {"accuracy", "gradient_norm"}


def test_a_model_that_knows_the_answers_fits_at_the_first_look() -> None:
    class Knows(nn.Module):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            answers = task.solve(tokens).clamp(min=0)
            return 9.0 * nn.functional.one_hot(answers, 3).float()

    config = check_run({**RUN, "training": {**RUN["training"], "until": {}}})
    task = task_of(config.task)
    fit = StoppingCriterion(task, config.training, Seeds(0, 0), CPU)

    assert fit.look(Knows(), 1)
    assert [(point.step, point.value) for point in fit.points] == [(1, 1.0)]
