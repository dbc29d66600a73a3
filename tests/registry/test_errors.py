"""What is wrong, as data: a code, a place, a line; and as one sentence."""

from pathlib import Path

import pytest

from registry import ConfigError, EncoderConfig, UnknownNameError
from registry.config import encoder_config
from registry.errors import Problem, missing, nearest, nearest_one, place_in, unknown_key

TEXT = """\
# a comment
encoder:
  d_model: 8
  position: {name: rope,
             theta: 3}
training.steps: 5
study:
  arms:
    - rope
    - none: {encoder.position: none}
    - deep:
        encoder.n_layers: 4
        evaluation: {examples: 3}
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("encoder", 2),
        ("encoder.d_model", 3),
        ("encoder.position.theta", 5),
        ("encoder.position.base", 4),
        ("training.steps", 6),
        ("training.steps.deeper", 6),
        ("study.arms", 8),
        ("study.arms.rope", 9),
        ("study.arms.1.none.encoder.position", 10),
        ("study.arms.none.encoder.position", 10),
        ("study.arms.deep.encoder.n_layers", 12),
        ("study.arms.deep.evaluation.examples", 13),
        ("nowhere", None),
        ("", None),
    ],
)
def test_the_line_of_a_key_is_that_of_its_deepest_step(
    tmp_path: Path, key: str, line: int | None
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT)
    found = place_in(str(file), key.split(".") if key else [])
    assert (found and found[0]) == line


def test_the_column_of_a_key_is_where_it_begins(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("a: {b: 1, cc: [d, 2]}\n")
    assert place_in(str(file), ["a", "cc"]) == (1, 11)
    assert place_in(str(file), ["a", "cc", "1"]) == (1, 19)


def test_what_is_no_yaml_has_no_lines(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    for file in (broken, empty, tmp_path / "gone.yaml", tmp_path, Path("-")):
        assert place_in(str(file), ["a"]) is None


def test_a_config_error_tells_file_line_and_key(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("d_model: 8\nn_heads: 2\nd_modl: 8\n")
    with pytest.raises(ConfigError) as caught:
        encoder_config(file)
    [problem] = caught.value.problems
    assert (problem.file, problem.line, problem.column) == (str(file), 3, 1)
    assert str(caught.value).startswith(f"{file}:3:1: d_modl: ")


def test_yaml_that_cannot_be_parsed_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("d_model: 8\nn_heads: 2: 3\n")
    with pytest.raises(ConfigError) as caught:
        encoder_config(file)
    [problem] = caught.value.problems
    assert (problem.code, problem.line, problem.column) == ("unreadable", 2, 11)


def test_a_problem_may_be_inside_a_named_thing() -> None:
    inner = Problem("encoder.d_model", "is odd")
    within = inner.within("study.arms", "rope")
    assert within.place == "study.arms (rope).encoder.d_model"
    assert within.steps == ["study", "arms", "rope", "encoder", "d_model"]
    assert inner.within("study.tune").place == "study.tune: encoder.d_model"
    assert Problem("study.match", "is off", item="rope").place == "study.match (rope)"
    assert str(Problem("", "is odd")) == "config: is odd"


def test_each_kind_of_problem_has_its_code() -> None:
    assert unknown_key("a.b", 3, ["c"]).code == "unknown_key"
    assert missing("a").code == "missing"
    wrong = UnknownNameError("position", "roep", ["alibi", "rope"])
    assert wrong.problem("position").code == "unknown_name"
    assert wrong.problem().nearest == "rope"
    with pytest.raises(ConfigError) as caught:
        EncoderConfig(d_modl=3, position="roep", d_model="8")
    assert {problem.key: problem.code for problem in caught.value.problems} == {
        "d_modl": "unknown_key",
        "position": "unknown_name",
        "d_model": "invalid",
    }


def test_one_problem_is_told_once_though_it_holds_what_cannot_be_hashed() -> None:
    twice = [Problem("a", "is odd", {"b": [1]}), Problem("a", "is odd", {"b": [1]})]
    assert len(ConfigError(twice).problems) == 1


def test_near_names_come_the_likest_first() -> None:
    assert nearest("roep", ["rope", "xpos", "none"], count=3)[0] == "rope"
    assert nearest_one("roep", ["rope", "xpos"]) == "rope"
    assert nearest_one("q", ["rope", "xpos"]) is None
