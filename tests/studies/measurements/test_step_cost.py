"""The cost of a step is measured without changing anything else."""

import torch

from studies.measurements import step_cost
from studies.training.execute import train_and_score
from studies.training.outcome import Outcome, Work
from studies.training.settings import check_run

CPU = torch.device("cpu")
CONFIG = check_run(
    {
        "encoder": {"vocab_size": 4, "n_classes": 3, "d_model": 8, "n_heads": 2, "n_layers": 1},
        "task": {"name": "shift", "k": 1, "alphabet": 3},
        "training": {"steps": 5, "batch_size": 4, "train_lengths": [4, 4]},
        "evaluation": {"test_lengths": [4], "examples": 4},
    }
)


def numbers(outcome: Outcome) -> dict[tuple[str, str], float | None]:
    return {(one.split, one.metric): one.value for one in outcome.scores}


def test_a_run_gives_the_same_numbers_and_its_cost() -> None:
    ticks: list[int] = []
    timed = numbers(step_cost.perform(Work(CONFIG, 0, CPU, lambda: ticks.append(1))))
    usual = numbers(train_and_score(Work(CONFIG, 0, CPU)))

    cost = timed.pop(("train", "step_milliseconds"))
    assert timed == usual
    assert cost is not None
    assert cost > 0
    assert len(ticks) == 5


def test_one_step_has_no_time_from_one_to_the_next() -> None:
    short = CONFIG.model_copy(update={"training": CONFIG.training.model_copy(update={"steps": 1})})
    found = numbers(step_cost.perform(Work(short, 0, CPU)))
    assert ("train", "step_milliseconds") not in found
