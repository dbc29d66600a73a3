"""A run that diverged is stored with the scores of a model that learned nothing."""

from typing import Any

import pytest
import torch

from store.metrics import SCORED
from studies.training.execute import execute
from studies.training.outcome import Outcome
from studies.training.settings import check_run, task_of

LENGTHS = [4, 6]


def run(rate: float, position: Any = "rope", **training: Any) -> Outcome:
    config = check_run(
        {
            "encoder": {
                "d_model": 8,
                "n_heads": 2,
                "n_layers": 1,
                "vocab_size": 5,
                "n_classes": 4,
                "position": position,
            },
            "task": {"name": "shift", "k": 1, "alphabet": 4},
            "training": {
                "steps": 20,
                "learning_rate": rate,
                "warmup_steps": 0,
                "clip_norm": None,
                "train_lengths": [3, 4],
                **training,
            },
            "evaluation": {"test_lengths": LENGTHS, "examples": 8},
        }
    )
    return execute(config, 0, torch.device("cpu"))


@pytest.fixture(scope="module")
def lost() -> Outcome:
    found = run(1e30)
    assert found.status == "diverged"
    return found


def test_it_is_scored_where_it_would_have_been(lost: Outcome) -> None:
    sound = run(1e-3)
    assert sound.status == "done"

    places = {(one.split, one.length, one.metric, one.n) for one in sound.scores}
    assert {(one.split, one.length, one.metric, one.n) for one in lost.scores} == {
        place for place in places if place[2] != "nll"
    }
    assert {one.imputed for one in lost.scores} == {True}
    assert {one.imputed for one in sound.scores} == {False}


def test_its_scores_are_those_of_a_model_that_learned_nothing(lost: Outcome) -> None:
    task = task_of(check_run({"task": {"name": "shift", "k": 1, "alphabet": 4}}).task)
    for length in LENGTHS:
        floor = task.floors(length).highest
        found = {one.metric: one.value for one in lost.scores if one.length == length}
        assert found == {"accuracy": floor, "exact": 0.0, "skill": 0.0, "floor": floor}


def test_a_length_that_its_model_refuses_stays_refused() -> None:
    lost = run(1e30, {"name": "learned", "max_length": 5})

    assert lost.status == "diverged"
    assert {(one.value, one.n) for one in lost.scores if one.length == 6} == {(None, 0)}
    assert {one.metric for one in lost.scores if one.length == 6} == set(SCORED)
    assert all(one.value is not None for one in lost.scores if one.length < 6)


def test_it_never_gets_to_the_criterion_of_fit() -> None:
    lost = run(1e30, until={"value": 0.99, "cap": 2.0})

    [time] = [one for one in lost.scores if one.metric == "steps_to_fit"]
    assert (time.split, time.value, time.correct, time.imputed) == ("train", 40.0, 0, True)
