"""Functions of the user's in a config: as a model, and as the way to do a run."""

from pathlib import Path
from typing import Any

import pytest
import torch

from registry import ConfigError
from studies.experiment.draft import Draft
from studies.experiment.overrides import gather
from studies.experiment.resolve import resolve
from studies.experiment.study import Budget, Study
from studies.seeds import Seeds
from studies.training.execute import execute
from studies.training.models import build_model
from studies.training.settings import check_run
from tests.messages import Messages
from tests.studies.made_up import check_draft

GRU = str(Path(__file__).parents[3] / "examples" / "gru.py") + ":build"
TASK = {"name": "shift", "k": 1, "alphabet": 3}
SHORT = {"steps": 3, "batch_size": 4, "train_lengths": [2, 5], "warmup_steps": 1}
FEW = {"test_lengths": [5, 7], "examples": 8}

MEASURES = """
from studies.training.outcome import Measured, Outcome, Work

def perform(work: Work, power: int = 2) -> Outcome:
    value = float((work.replicate + 1) ** power)
    return Outcome(scores=[Measured("test", 1, "error", 1, value)])

def lacks(power: int = 2): ...
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(MEASURES)
    return str(tmp_path / "mine.py")


def test_a_module_of_the_users_is_trained_and_scored_like_an_encoder() -> None:
    config = check_run({"model": GRU, "task": TASK, "training": SHORT, "evaluation": FEW})

    outcome = execute(config, 0, torch.device("cpu"))

    assert outcome.status == "done"
    assert {(one.split, one.length) for one in outcome.scores} >= {("test", 5), ("test", 7)}
    assert outcome.parameters == sum(
        one.numel() for one in build_model(config, Seeds(0, 0)).parameters()
    )


def test_its_weights_follow_from_the_replicate_and_leave_the_global_generator_alone() -> None:
    config = check_run({"model": {"name": GRU, "d_model": 8}, "task": TASK})
    torch.manual_seed(5)
    expected = torch.rand(1)

    torch.manual_seed(5)
    one, same, other = (build_model(config, Seeds(0, seed)) for seed in (0, 0, 1))

    assert torch.equal(torch.rand(1), expected)
    weights = [model.get_parameter("head.weight") for model in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_a_run_is_done_by_the_function_that_its_config_names(mine: str) -> None:
    config = check_run({"perform": {"name": f"{mine}:perform", "power": 3}})

    outcome = execute(config, 1, torch.device("cpu"))

    assert [(one.metric, one.value) for one in outcome.scores] == [("error", 8.0)]
    assert outcome.cpu_seconds >= 0


@pytest.mark.parametrize(
    ("roots", "told"),
    [
        ({"model": {"name": GRU, "d_modle": 8}}, "unknown key 'd_modle'; did you mean 'd_model'?"),
        (
            {"model": {"name": GRU, "d_model": "8"}},
            "d_model: input should be a valid int",
        ),
        ({"model": GRU.replace("build", "biuld")}, "holds no function 'biuld'"),
        ({"model": "gru"}, "model is named as \"package.module:function\"; got 'gru'"),
        ({"model": "no.such:build"}, "no module named 'no'"),
    ],
)
def test_what_does_not_fit_a_function_is_refused(roots: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_run({**roots, "task": TASK})

    assert told in str(caught.value)


def test_a_function_that_lacks_what_it_is_given_is_refused(messages: Messages, mine: str) -> None:
    with messages.raises(ConfigError):
        check_run({"perform": f"{mine}:lacks"})


def test_another_source_of_a_function_is_another_run(tmp_path: Path) -> None:
    """Two files of one function: its text is part of what identifies a run."""

    def identity(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        settings = {
            "perform": f"{tmp_path / name}:perform",
            "study": {"arms": {"only": {"perform": {"power": 2}}}, "panels": [{"label": "p"}]},
        }
        study = Study("s", "?", "?", (), {"own": Budget("", {})})
        draft = Draft(study, gather(settings))
        check_draft(draft)
        [cell] = draft.cells()
        [run, *_] = resolve(draft).confirming(cell, {})
        assert run.steps == 0
        return next(iter(run.provenance["plugin_parts"].values()))

    assert identity("one.py", MEASURES) == identity("two.py", MEASURES)
    assert identity("one.py", MEASURES) != identity("three.py", MEASURES + "\nCHANGED = 1\n")
