"""Studies in YAML files of one folder."""

from pathlib import Path

import pytest

from registry.errors import UnknownNameError
from studies.experiment.collection import Collection
from studies.experiment.overrides import gather
from tests.messages import Messages

FILE = """
name: mine
question: Does it matter?
variable: encoder.n_layers
task: shift
training: {steps: 300}
study: {arms: [1, 2], seeds: 5}
budgets:
  quick: {about: a minute}
  paper: {training: {steps: 900}}
"""


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    (tmp_path / "mine.yaml").write_text(FILE)
    (tmp_path / "notes.txt").write_text("no study")
    return Collection(tmp_path, "recipe", "my.recipes")


def test_a_study_is_called_by_its_name(collection: Collection) -> None:
    study = collection.read("mine")

    assert collection.names() == ["mine"]
    assert (study.launcher, study.program) == (
        "python -m my.recipes",
        "python -m my.recipes mine",
    )
    assert study.default_budget == "quick"


def test_smoke_and_standard_follow_from_quick(collection: Collection) -> None:
    budgets = collection.read("mine").budgets

    found = {name: gather(budget.settings) for name, budget in budgets.items()}

    assert {name: one.training.steps for name, one in found.items()} == {
        **{"smoke": 4, "quick": 300, "standard": 300, "paper": 900}
    }
    assert [found[name].study.seeds for name in ("smoke", "quick", "standard")] == [2, 5, 16]


def test_a_standard_of_its_own_is_kept(collection: Collection) -> None:
    own = FILE + "  standard: {about: mine, study: {seeds: 9}}\n"
    collection.file("mine").write_text(own)

    assert gather(collection.read("mine").budgets["standard"].settings).study.seeds == 9


def test_an_unknown_study_is_told_by_its_kind(messages: Messages, collection: Collection) -> None:
    with messages.raises(UnknownNameError):
        collection.read("min")
