"""How defaults, file and assignments come together, and what is refused."""

from pathlib import Path

import pytest

from registry import ConfigError
from studies.experiment.overlays import Layer, name_of
from studies.experiment.overrides import gather, resolve_settings
from tests.messages import Messages

DEFAULTS = {
    "encoder": {"d_model": 32, "feedforward": {"name": "gelu", "d_ff": 128}},
    "training": {"warmup_steps": 5},
    "study": {
        "arms": ["rope", "none"],
        "learning_rates": [1e-3, 3e-3],
        "panels": [
            {"task": {"name": "shift", "k": 3}, "steps": 600},
            {"task": "nearest_marked", "steps": 800},
        ],
    },
}


def settle(*assignments: str, file: Path | None = None):
    return gather(DEFAULTS, file, assignments)


def refused(*assignments: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        settle(*assignments)
    return [str(problem) for problem in caught.value.problems]


def test_assignments_win_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("training: {batch_size: 8, warmup_steps: 7}\nevaluation: {examples: 9}\n")

    settings = settle("training.batch_size=16", file=file)

    assert settings.training.batch_size == 16
    assert settings.training.warmup_steps == 7
    assert settings.evaluation.examples == 9
    assert settings.encoder["d_model"] == 32


@pytest.mark.parametrize(("text", "value"), [("1e-4", 1e-4), ("1e-1", 0.1), ("1", 1), ("0.5", 0.5)])
def test_values_of_assignments_are_yaml(text: str, value: object) -> None:
    assert settle(f"training.weight_decay={text}").training.weight_decay == value


@pytest.mark.parametrize("text", ["a", "=1", "a..b=1", ".a=1"])
def test_an_assignment_without_key_or_value_is_refused(messages: Messages, text: str) -> None:
    with messages.raises(ConfigError):
        settle(text)


def test_a_task_takes_the_place_of_all_panels_and_keeps_the_steps_of_its_own() -> None:
    [panel] = settle("task=nearest_marked").study.panels

    assert (name_of(panel.model_dump()["task"]), panel.steps) == ("nearest_marked", 800)


def test_options_of_a_named_task_are_set() -> None:
    [panel] = settle("task.name=shift", "task.k=1").study.panels

    assert (str(panel.task), panel.steps) == ("shift(k=1, alphabet=8)", 600)


def test_a_task_that_is_not_in_the_study_takes_the_steps_of_training() -> None:
    settings = settle("task=reverse")

    assert str(settings.study.panels[0].task) == "reverse(alphabet=8, answer_at=in_place)"
    assert settings.study.panels[0].steps is None


def test_an_option_of_no_task_in_particular_is_refused_where_there_are_several() -> None:
    [problem] = refused("task.k=1")

    assert "task.k needs task.name as well" in problem
    assert "shift, nearest_marked" in problem


def test_steps_set_by_the_user_hold_for_every_task() -> None:
    settings = settle("training.steps=5")

    assert settings.training.steps == 5
    assert [panel.steps for panel in settings.study.panels] == [None, None]


def test_a_learning_rate_set_by_the_user_is_the_only_one_tried() -> None:
    assert settle("training.learning_rate=0.5").study.learning_rates == (0.5,)
    [problem] = refused("training.learning_rate=0.5", "study.learning_rates=[1.0]")
    assert "either one learning_rate or the list study.learning_rates" in problem


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ("training.batchsize=3", "unknown key 'batchsize'; did you mean 'batch_size'?"),
        ("trainning.steps=3", "trainning: unknown key 'trainning'; did you mean 'training'?"),
        ("training.steps='4'", "training.steps: input should be a valid integer; got '4'"),
        ("training.steps=-1", "training.steps: input should be greater than or equal to 0; got -1"),
        ("study.learning_rates=[.nan]", "study.learning_rates.0:"),
        ("training.learning_rate=-1", "training.learning_rate: input should be greater than 0"),
        ("training.schedule=linea", "training.schedule:"),
        ("training.train_lengths=[5, 2]", "train_lengths is [shortest, longest]; got [5, 2]"),
        ("study.learning_rates=[]", "study.learning_rates:"),
        ("study.arms=[]", "study.arms:"),
        ("study.seeds=0", "study.seeds:"),
        ("training.n_heads=4", "unknown key 'n_heads'; did you mean 'encoder.n_heads'?"),
        ("evaluation.steps=1", "unknown key 'steps'; did you mean 'training.steps'?"),
        ("examples=8", "unknown key 'examples'; did you mean"),
        ("task=shfit", "no task is named 'shfit'; did you mean 'shift'?"),
        ("task={name: shift, kk: 2}", "unknown key 'kk'; did you mean 'k'?"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_key(assignment: str, told: str) -> None:
    [problem] = refused(assignment)

    assert told in problem


def test_every_problem_is_told_at_once() -> None:
    assert len(refused("training.steps=-1", "study.seed=x", "evaluation.exampels=3")) == 3


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ("study=3", "study: study holds keys, such as study.arms; got 3"),
        ("training=3", "training: training holds keys, such as training.steps; got 3"),
        ("study.panels=3", "study.panels: panels is a list of mappings"),
        ("study.panels=[3]", "study.panels: panels is a list of mappings"),
        ("evaluation.test_lengths=[16, 16]", "each is given once; got 16 2 times"),
        ("training.train_lengths=8", "training.train_lengths: input should be a list; got 8"),
        ("study.learning_rates=[0.1, 0.1]", "each is given once; got 0.1 2 times"),
    ],
)
def test_a_value_of_another_kind_is_refused(assignment: str, told: str) -> None:
    [problem] = refused(assignment)

    assert told in problem


def test_problems_of_the_encoder_are_told_with_the_others() -> None:
    problems = " ".join(refused("encoder.n_head=3", "training.steps=-1", "task=shfit"))

    for told in ("encoder.n_head: unknown key", "training.steps: ", "no task is named 'shfit'"):
        assert told in problems


def test_what_an_option_breaks_is_not_blamed_on_a_file() -> None:
    layers = (Layer({"study": {"seeds": 3}}, Path("mine.yaml")),)

    [problem] = resolve_settings(DEFAULTS, options={"seeds": 0}, layers=layers).problems

    assert (problem.key, problem.file) == ("study.seeds", None)


def test_a_whole_study_given_as_settings_is_told_how_it_is_run(
    messages: Messages, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\nquestion: Which?\ntask: shift\n")
    with messages.raises(ConfigError):
        gather({}, file)


def test_a_root_that_holds_no_keys_is_told_with_its_file(
    messages: Messages, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("training: 3\n")
    with messages.raises(ConfigError):
        gather({}, file)
