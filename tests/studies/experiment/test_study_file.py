"""A study in one YAML file."""

from pathlib import Path

import pytest

from registry import ConfigError
from studies.experiment.draft import Draft
from studies.experiment.load import Typed, load_draft
from studies.experiment.overrides import gather
from studies.experiment.study_file import read_study
from studies.experiment.validate import draft_problems
from tests.messages import Messages

EXAMPLE = Path(__file__).parents[3] / "examples" / "my_study.yaml"

MINE = """
name: mine
question: Does it matter?
variable: encoder.n_layers
task: shift
study:
  arms: [1, 2]
  learning_rates: [1e-3]
  hypotheses:
    - {name: deeper, claim: it does, arm: "2", against: "1", panel: shift, lengths: [16]}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.yaml"
    file.write_text(text)
    return file


def test_the_example_is_a_study_whose_every_budget_can_be_done() -> None:
    study = read_study(EXAMPLE)

    assert (study.name, study.variables) == ("far_copies", ("encoder.position",))
    for budget in study.budgets:
        load_draft(study, Typed(budget))


def test_a_budget_is_laid_over_what_the_file_says() -> None:
    study = read_study(EXAMPLE)

    smoke, quick = (gather(study.budgets[name].settings) for name in ("smoke", "quick"))

    assert (smoke.training.steps, quick.training.steps) == (10, 400)
    assert (smoke.study.seeds, quick.study.seeds) == (2, 6)
    assert smoke.evaluation == quick.evaluation
    assert study.default_budget == "quick"


def test_a_file_without_budgets_is_its_own(tmp_path: Path) -> None:
    study = read_study(written(tmp_path, MINE))

    assert list(study.budgets) == ["file"]
    draft = Draft(study, gather(study.budgets["file"].settings))
    assert draft_problems(draft) == []
    assert [cell.arm for cell in draft.cells()] == ["1", "2"]


def test_what_registers_parts_is_seen_from_the_file(tmp_path: Path) -> None:
    study = read_study(written(tmp_path, MINE + "import: [parts.py, my_package.parts]\n"))

    assert study.plugins == (str(tmp_path / "parts.py"), "my_package.parts")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "queston: what?",
            "mine.yaml:11:1: queston: unknown key 'queston'; did you mean",
        ),
        ("name: 3", "name: name is a text; got 3"),
        ("variable: position", "a variable is a dotted key such as encoder.position"),
        ("import: [3]", "import is a text, or a list of texts"),
        ("budgets: [quick]", "budgets are names with settings"),
        ("budgets: {quick: 3}", "budgets.quick: a budget holds settings"),
        ("budgets: {quick: {trainng: {}}}", "budgets.quick.trainng: unknown key 'trainng'"),
    ],
)
def test_a_file_that_describes_no_study_is_refused(tmp_path: Path, change: str, told: str) -> None:
    key = change.split(":")[0]
    kept = "\n".join(line for line in MINE.splitlines() if not line.startswith(f"{key}:"))

    with pytest.raises(ConfigError) as caught:
        read_study(written(tmp_path, f"{kept}\n{change}\n"))

    assert told in str(caught.value)


def test_a_study_needs_a_name_and_a_question(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_study(written(tmp_path, "task: shift\n"))

    assert "name: this key is required" in str(caught.value)
    assert "question: this key is required" in str(caught.value)


def test_what_is_wrong_with_settings_is_told_with_the_file_and_with_the_arms(
    tmp_path: Path,
) -> None:
    text = MINE.replace("arms: [1, 2]", "arms: [1, two]") + "training: {stepps: 3}\n"
    study = read_study(written(tmp_path, text))

    with pytest.raises(ConfigError) as caught:
        load_draft(study, Typed("file", assignments=["evaluation.examples=0"]))

    told = str(caught.value)
    assert "training.stepps: unknown key 'stepps'" in told
    assert "\n  evaluation.examples: input should be greater" in told
    assert "study.arms (two): input should be a valid integer; got 'two'" in told


def test_a_slip_in_a_hypothesis_is_refused_and_a_choice_of_arms_is_not(
    messages: Messages, tmp_path: Path
) -> None:
    study = read_study(written(tmp_path, MINE))
    load_draft(study, Typed("file", options={"only": ["1"]}))

    slip = read_study(written(tmp_path, MINE.replace("panel: shift", "panel: shfit")))
    with messages.raises(ConfigError):
        load_draft(slip, Typed("file"))


def test_a_source_is_told_to_readers(tmp_path: Path) -> None:
    study = read_study(written(tmp_path, MINE + "source: Folklore 2017\n"))

    assert study.text == "Does it matter?\n\nSource: Folklore 2017."


WRONG = """
name: wrong
question: Which?
varible: encoder.position
encoder: {d_modell: 16, n_heads: 2, n_layers: 1}
training: {stepz: 10, warmup_steps: 2, train_lengths: [2, 8]}
evaluation: {test_length: [8, 16], examples: 16}
study:
  seed_s: 3
  panels:
    - {task: {name: shift, kk: 1}, labell: x}
  arms:
    rope: {encoder.positon: rope}
    deep: {encoder.n_layer: 2}
    odd: {encodr.n_layers: 2}
  hypotheses:
    - {name: one, claim: A., arm: rope, agains: deep, panel: x, lengths: [16]}
budgets:
  quick: {trainin: {}, training: {step: 4}}
  big: {training: {batchsize: 4}}
"""
NEAR = {
    "varible": "variable",
    "budgets.quick.trainin": "training",
    "encoder.d_modell": "d_model",
    "training.stepz": "steps",
    "evaluation.test_length": "test_lengths",
    "study.seed_s": "seeds",
    "study.panels.0.task.kk": "k",
    "study.panels.0.labell": "label",
    "study.arms.odd.encodr.n_layers": "encoder",
    "study.hypotheses.0.agains": "against",
    "budgets.quick.training.step": "steps",
    "budgets.big.training.batchsize": "batch_size",
    "study.arms (rope).encoder.positon": "position",
    "study.arms (deep).encoder.n_layer": "n_layers",
}


def test_wrong_keys_of_every_level_are_told_at_once_each_with_its_near_word(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_study(written(tmp_path, WRONG))

    assert {problem.place: problem.nearest for problem in caught.value.problems} == NEAR


def test_what_follows_from_a_wrong_key_alone_is_not_told(tmp_path: Path) -> None:
    # The label is lost, so that no panel is called far: the hypothesis is right all the same.
    text = MINE.replace("task: shift\n", "").replace("panel: shift", "panel: far")
    study = read_study(
        written(tmp_path, text.replace("study:", "study:\n  panels: [{task: shift, labell: far}]"))
    )

    with pytest.raises(ConfigError) as caught:
        load_draft(study, Typed("file"))

    [problem] = caught.value.problems
    assert (problem.key, problem.nearest) == ("study.panels.0.labell", "label")


def test_a_budget_that_is_not_asked_for_is_checked_too(messages: Messages, tmp_path: Path) -> None:
    text = MINE + "budgets: {quick: {}, big: {study: {seedz: 3}}}\n"
    study = read_study(written(tmp_path, text))

    with messages.raises(ConfigError):
        load_draft(study, Typed("quick"))


def test_a_dotted_root_is_told_as_it_is_written_here(messages: Messages, tmp_path: Path) -> None:
    with messages.raises(ConfigError):
        read_study(written(tmp_path, MINE + "budgets: {quick: {training.steps: 3}}\n"))


def test_a_missing_key_is_told_with_the_file_that_lacks_it(
    messages: Messages, tmp_path: Path
) -> None:
    study = read_study(written(tmp_path, MINE.replace(', against: "1"', "")))

    with messages.raises(ConfigError):
        load_draft(study, Typed("file"))


def test_a_cell_of_a_crossed_design_that_is_spelled_otherwise_is_named(
    messages: Messages, tmp_path: Path
) -> None:
    crossed = "factors: {encoder.n_layers: [1, 2], encoder.norm_placement: [pre, post]}"
    text = MINE.replace("arms: [1, 2]", crossed).replace('arm: "2", against: "1"', (
        "arm: 2 x pre, against: 1 × pre"
    ))  # fmt: skip

    with messages.raises(ConfigError):
        load_draft(read_study(written(tmp_path, text)), Typed("file"))
