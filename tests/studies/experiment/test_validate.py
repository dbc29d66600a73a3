"""Every slip in the file of a study is told at its place before anything is done."""

import re
from pathlib import Path

import pytest

from registry import ConfigError
from studies.experiment.load import Typed, load_draft
from studies.experiment.study_file import read_study

FILE = """
name: mine
question: Does it carry?
variable: encoder.position
encoder: {d_model: 8, n_heads: 2, n_layers: 1}
task: {name: shift, k: 2}
training: {steps: 5, train_lengths: [3, 8]}
evaluation: {test_lengths: [8, 16]}
study:
  arms: [rope, none]
  seeds: 2
  hypotheses:
    - {name: h, claim: c, arm: rope, against: none, panel: shift, lengths: [16]}
"""
HYPOTHESIS = FILE[FILE.index("  hypotheses:") :]
ARMS = "arms: [rope, none]"


def told(folder: Path, text: str) -> list[str]:
    """What is wrong with a study of this text, a line each."""
    file = folder / "mine.yaml"
    file.write_text(text)

    def read() -> None:
        study = read_study(file)
        load_draft(study, Typed())

    with pytest.raises(ConfigError) as caught:
        read()
    problems = [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]
    return [re.sub(r"(?<=^mine\.yaml)(:\d+)+", "", problem) for problem in problems]


def one_told(folder: Path, was: str, slip: str) -> str:
    assert was in FILE
    (line,) = told(folder, FILE.replace(was, slip, 1))
    return line


@pytest.mark.parametrize(
    ("was", "slip", "line"),
    [
        # a root that holds no keys
        ("{steps: 5, train_lengths: [3, 8]}", "", "training: training holds keys, such as"),
        ("{steps: 5, train_lengths: [3, 8]}", "3", "training: training holds keys, such as"),
        (FILE[FILE.index("\n  arms") :], "\n", "study: study holds keys, such as study.arms"),
        (FILE[FILE.index("\n  arms") :], " [rope]\n", "study: study holds keys, such as"),
        ("{d_model: 8, n_heads: 2, n_layers: 1}", "3", "encoder: encoder holds keys, such as"),
        (
            "{d_model: 8, n_heads: 2, n_layers: 1}",
            "modern",
            "encoder: encoder holds keys, such as encoder.d_model; got 'modern'; a preset is named "
            "by {preset: modern}",
        ),
        # keys and words of any level
        ("d_model: 8", "d_modell: 8", "encoder.d_modell: unknown key 'd_modell'; did you mean"),
        ("k: 2", "k: 0", "task: shift: k must be at least 1; got k=0"),
        ("steps: 5", "schedule: linaer", "training.schedule: .*; did you mean 'linear'\\?"),
        ("steps: 5", "warmup_steps: 1.5", "training.warmup_steps: input should be a valid integer"),
        ("steps: 5", "examples: infinit", "training.examples: .*; did you mean 'infinite'\\?"),
        ("steps: 5", "until: 0.9", "training.until: input should be a mapping; got 0.9"),
        (
            "[8, 16]",
            "[8, 16], probes: [symmetries, symmetries]",
            "evaluation.probes: each is given once; got 'symmetries' 2 times",
        ),
        # arms
        (ARMS, "arms: [rope, none, roep]", "study.arms \\(roep\\): no position is named 'roep'"),
        (ARMS, "arms: {rope: , none: , x: {encoder: rope}}",
         "study.arms \\(x\\).encoder: encoder holds keys, such as encoder.d_model; got 'rope'"),
        (ARMS, "arms: {rope: , none: , x: {model: nowhere:build}}",
         "study.arms \\(x\\).model.import: nowhere: no module named 'nowhere'"),
        (ARMS, "arms: [rope, rope]", "study.arms: each is given once; got 'rope' 2 times"),
        (ARMS, "arms: {rope: , none: , x: {encodr.n_layers: 2}}",
         "study.arms.x.encodr.n_layers: an overlay changes roots"),
        (ARMS, "arms: {rope: , none: , '': {encoder.n_layers: 2}}",
         "study.arms: the name of an arm is one line that is not empty; got ''"),
        # what tuning tries, matching, keys that may differ
        ("seeds: 2", "tune: {encoder.droput: [0.0, 0.1]}",
         "study.tune: encoder.droput: unknown key 'droput'; did you mean 'dropout'\\?"),
        ("seeds: 2", "tune: {lr: [0.1]}", "study.tune.0.lr: an overlay changes roots"),
        ("seeds: 2", "match: {what: parameters, to: roep}",
         "study.match.to: no arm of this study is named 'roep'; did you mean 'rope' or"),
        ("seeds: 2", "match: {what: parameters, adjust: encoder.d_modle}",
         "study.match.adjust: no run has the key 'encoder.d_modle'; did you mean"),
        ("seeds: 2", "match: {what: parameters, adjust: training.learning_rate}",
         "study.match.adjust: a knob holds a whole number; training.learning_rate is 0.003"),
        ("seeds: 2", "also_differs: [encodr.n_layers]",
         "study.also_differs: no run has the key 'encodr.n_layers'; did you mean 'encoder'\\?"),
        ("seeds: 2", "also_differs: [training.stepz]",
         "study.also_differs: no run has the key 'training.stepz'; did you mean 'training.steps'"),
        ("variable: encoder.position", "variable: encoder.positionn",
         "variable: no run has the key 'encoder.positionn'; did you mean 'encoder.position'\\?"),
        ("variable: encoder.position", "variable: encoder..position",
         "variable: a variable is a dotted key"),
        ("seeds: 2", "panels: [{task: shift}, {task: reverse}]",
         "task: a study has either one task or the list study.panels"),
        # hypotheses
        ("claim: c", "claim: ''", "study.hypotheses.0: a hypothesis has a claim; got ''"),
        ("name: h,", "name: ' ',", "study.hypotheses.0: a hypothesis has a name; got ' '"),
        ("lengths: [16]", "lengths: [16, 16]",
         "study.hypotheses.0: h: each length is given once; got 16 twice"),
        ("lengths: [16]", "lengths: [16], metric: skil",
         "study.hypotheses \\(h\\): no run has the metric 'skil' .*; did you mean 'skill'\\?"),
        ("lengths: [16]", "lengths: [16], smallest_effect: 5",
         "study.hypotheses \\(h\\): skill is a share, in which .* got smallest_effect=5"),
        ("test_lengths: [8, 16]", "test_lengths: [8]",
         "study.hypotheses \\(h\\): length 16 is not tested in this call, but 8"),
        # a name that no folder can have
        ("name: mine", "name: a/b", "name: a study has a name that a folder can have: .*'a/b'"),
        ("name: mine", "name: ../up", "name: a study has a name that a folder can have"),
        ("name: mine", 'name: "a\\nb"', "name: a study has a name that a folder can have"),
    ],
)  # fmt: skip
def test_a_slip_is_told_once_with_its_file_and_key(
    tmp_path: Path, was: str, slip: str, line: str
) -> None:
    assert re.match(f"mine.yaml: {line}", one_told(tmp_path, was, slip))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ("training: ", "budgets.smoke.training: training holds keys, such as training.steps"),
        ("study: 3", "budgets.smoke.study: study holds keys, such as study.arms; got 3"),
        ("encoder: {d_modle: 3}", "budgets.smoke.encoder.d_modle: unknown key 'd_modle'; did you"),
        ("about: 3", "budgets.smoke.about: about is a text; got 3"),
    ],
)
def test_a_budget_that_is_not_asked_for_is_read_as_strictly(
    tmp_path: Path, settings: str, line: str
) -> None:
    (said,) = told(tmp_path, FILE + f"budgets: {{smoke: {{{settings}}}, quick: {{}}}}\n")
    assert said.startswith(f"mine.yaml: {line}")


def test_several_wrong_arms_are_all_told_though_a_hypothesis_names_them(tmp_path: Path) -> None:
    arms = "arms: {rope: {encoder.position: roep}, none: {encoder.n_layer: 2}}"
    lines = told(tmp_path, FILE.replace(ARMS, arms).replace("lengths: [16]", "lengths: [17]"))
    assert [line.split(": ")[1] for line in lines] == [
        "study.arms (rope).encoder.position",
        "study.arms (none).encoder.n_layer",
    ]


def test_every_arm_of_a_hypothesis_is_tested_at_its_lengths(tmp_path: Path) -> None:
    arms = "arms: {rope: , none: {encoder.position: none, evaluation.test_lengths: [8]}}"
    line = one_told(tmp_path, ARMS, f"{arms}\n  also_differs: [evaluation.test_lengths]")
    assert line.startswith("mine.yaml: study.hypotheses (h): length 16 is not tested")


def test_a_bare_arm_of_an_option_is_told_under_the_arm(tmp_path: Path) -> None:
    text = FILE.replace("encoder.position", "task.k").replace(HYPOTHESIS, "")
    assert told(tmp_path, text.replace(ARMS, "arms: [1, two]")) == [
        "mine.yaml: study.arms (two): input should be a valid integer; got 'two'"
    ]


def test_a_wrong_level_of_a_factor_is_told_with_the_file(tmp_path: Path) -> None:
    text = FILE.replace(ARMS, "factors: {encoder.positon: [rope]}").replace(HYPOTHESIS, "")
    (line,) = told(tmp_path, text.replace("variable: encoder.position\n", ""))
    assert line.startswith("mine.yaml: study.arms (rope).encoder.positon: unknown key 'positon'")


@pytest.mark.parametrize(("probe", "known"), [("gradient_norms", "gradient_norm[0]"),
                                              ("symmetries", "reflection"),
                                              ("attention", "attention_offset.0[-1]")])  # fmt: skip
def test_the_metrics_of_probes_may_be_asked_and_slips_of_them_are_told(
    tmp_path: Path, probe: str, known: str
) -> None:
    text = FILE.replace("[8, 16]}", f"[8, 16], probes: [{probe}]}}")
    file = tmp_path / "right.yaml"
    file.write_text(text.replace("lengths: [16]", f"lengths: [16], metric: '{known}'"))
    load_draft(read_study(file), Typed("file"))

    (line,) = told(tmp_path, text.replace("lengths: [16]", "lengths: [16], metric: skil"))
    assert "no run has the metric 'skil'; measured are" in line
    assert line.endswith("did you mean 'skill'?")


def test_an_arm_that_was_typed_may_be_the_slip_of_one_that_is_declared(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    arms = "arms: {slow_turning: {encoder.position: {name: rope, theta: 9.0}}, none: }"
    file.write_text(FILE.replace(ARMS, arms).replace(HYPOTHESIS, ""))
    with pytest.raises(ConfigError) as caught:
        load_draft(read_study(file), Typed("file", options={"only": ["slow_turing"]}))
    (problem,) = caught.value.problems
    assert (problem.key, problem.item, problem.inside) == ("--arms", "slow_turing", "")
    assert (problem.nearest, problem.file) == ("slow_turning", None)
    assert problem.allowed[:2] == ("slow_turning", "none")


@pytest.mark.parametrize(
    ("was", "slip", "line"),
    [
        ("d_model: 8", "d_modell: 8", 5),
        ("k: 2", "k: 0", 6),
        ("seeds: 2", "tune:\n    - {training.learning_rate: 0.1}\n    - {lr: 0.1}", 13),
        ("[rope, none]", "\n    rope:\n    none:\n    x:\n      encoder: {d_modl: 3}", 14),
        ("[rope, none]", "\n    - rope\n    - none\n    - roep", 13),
        ("claim: c", "claim: ''", 13),
        ("question: Does it carry?", "about: nothing", None),
    ],
)
def test_a_slip_is_told_with_its_line(
    tmp_path: Path, was: str, slip: str, line: int | None
) -> None:
    assert was in FILE
    file = tmp_path / "mine.yaml"
    file.write_text(FILE.replace(was, slip, 1))
    with pytest.raises(ConfigError) as caught:
        load_draft(read_study(file), Typed("file"))
    assert [problem.line for problem in caught.value.problems] == [line]


def test_a_plug_in_that_the_file_names_is_told_with_the_file(tmp_path: Path) -> None:
    (line,) = told(tmp_path, FILE + "import: gone.py\n")
    assert line == "mine.yaml: import: gone.py: no such file"
