"""A study of crossed factors that claims an interaction, from its YAML to its answer."""

from pathlib import Path
from typing import Any

import pytest

from registry import ConfigError
from studies.analysis import sentence
from studies.analysis.sentences import claims
from studies.experiment.draft import Draft
from studies.experiment.overrides import gather
from studies.experiment.study_file import read_study
from studies.experiment.validate import draft_problems
from studies.report.findings import findings_of
from studies.report.page import html_page, markdown_page
from tests.messages import Messages
from tests.studies.made_up import CLAIM, MadeUp, check_draft, draft

TEXT = """
name: placement
question: Does the gain of rope depend on where the norm is?
task: {name: shift, k: 1, alphabet: 3}
encoder: {d_model: 8, n_heads: 2, n_layers: 1}
training: {steps: 5, warmup_steps: 0, train_lengths: [2, 16], until: {value: 0.9, stop: false}}
evaluation: {test_lengths: [16, 32], examples: 16}
study:
  factors: {encoder.position: [rope, none], encoder.norm_placement: [pre, post]}
  learning_rates: [1e-3]
  seeds: 5
  hypotheses:
    - name: gain
      claim: Rope gains more where the norm comes first.
      arm: rope × pre
      against: none × pre
      than: [rope × post, none × post]
      panel: shift
      lengths: [32]
    - name: sooner
      claim: Rope fits sooner.
      arm: rope × pre
      against: none × pre
      panel: shift
      metric: steps_to_fit
      lengths: [16]
      direction: less
      smallest_effect: 50
"""
CELLS = ("rope × pre", "none × pre", "rope × post", "none × post")
NOISE = (0.02, -0.02, 0.01, -0.01, 0.0)


@pytest.fixture
def made(tmp_path: Path) -> Draft:
    file = tmp_path / "placement.yaml"
    file.write_text(TEXT)
    study = read_study(file)
    return Draft(study, gather(study.budgets["file"].settings))


def test_a_file_states_an_interaction_and_a_time(made: Draft) -> None:
    assert draft_problems(made) == []

    gain, sooner = made.settings.study.hypotheses
    assert gain.arms == CELLS
    assert gain.weights == (1, -1, -1, 1)
    assert (sooner.metric, sooner.than) == ("steps_to_fit", None)


def test_the_answer_of_known_cells_is_the_interaction_that_they_have(
    tmp_path: Path, made: Draft
) -> None:
    """Rope gains .4 under pre and .1 under post: .3 more."""
    means = dict(zip(CELLS, (0.9, 0.5, 0.6, 0.5), strict=True))
    skills = {arm: [(1.0, mean + one) for one in NOISE] for arm, mean in means.items()}
    study = MadeUp(tmp_path, made, skills)

    gain, sooner = study.verdicts

    assert gain.status == "supported"
    assert gain.effect == pytest.approx(0.3)
    assert gain.family == sooner.family == 2
    assert "the lead of rope × pre over none × pre exceeds that of rope × post" in sentence(gain)
    assert "rope × pre has no steps_to_fit at length 16" in sentence(sooner)


def test_its_report_says_the_interaction(tmp_path: Path, made: Draft) -> None:
    skills = {arm: [(1.0, 0.9 + one) for one in NOISE] for arm in CELLS}
    study = MadeUp(tmp_path, made, skills)

    findings = findings_of(study.plan, study.url)

    name = "(rope × pre − none × pre) > (rope × post − none × post) on shift"
    assert claims(findings.verdicts).endswith("1 refuted (gain), 1 not tested (sooner).")
    page, text = html_page(findings)[0], markdown_page(findings, {})
    assert name.replace(">", "&gt;") in page
    assert name in text


def interaction(**changes: Any) -> Draft:
    factors = {"encoder.position": ["rope", "none"], "encoder.norm_placement": ["pre", "post"]}
    claim = {
        **CLAIM,
        "arm": "rope × pre",
        "against": "none × pre",
        "than": ["rope × post", "none × post"],
        **changes,
    }
    return draft(5, factors=factors, hypotheses=[claim])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"against": "none × post", "than": ["rope × post", "none × pre"]}, "differ in encoder"),
        ({"than": ["none × post", "rope × post"]}, "one thing changes in a contrast"),
        ({"than": ["rope × post", "none × pre"]}, "one thing changes|got 'none × pre' twice"),
        ({"than": ["rope × post"]}, r"study\.hypotheses\.0\.than"),
        ({"than": "rope × post"}, r"study\.hypotheses\.0\.than"),
        ({"metric": "steps_to_fit", "lengths": [16]}, "say it in training.until"),
    ],
    ids=str,
)
def test_one_thing_changes_in_each_of_its_simple_contrasts(
    changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        check_draft(interaction(**changes))


def test_the_second_pair_makes_the_same_change_as_the_first(messages: Messages) -> None:
    """One thing changes between any two of four encodings, yet no effect is seen twice."""
    arms = ["rope", "none", "alibi", "sinusoidal"]
    claim = {**CLAIM, "against": "none", "than": ["alibi", "sinusoidal"]}

    with messages.raises(ConfigError) as caught:
        check_draft(draft(5, arms=arms, hypotheses=[claim]))

    assert "encoder.position.name: rope against none" in str(caught.value)
    assert "encoder.position.name: alibi against sinusoidal" in str(caught.value)


def test_a_sound_interaction_is_no_problem() -> None:
    check_draft(interaction())


def test_a_time_is_asked_at_the_longest_trained_length(messages: Messages) -> None:
    claim = {**CLAIM, "metric": "steps_to_fit"}
    own = draft(5, hypotheses=[claim])
    settings = gather(own.study.budgets["own"].settings, None, ["training.until={value: 0.9}"])

    with messages.raises(ConfigError):
        check_draft(Draft(own.study, settings))


@pytest.mark.slow
def test_a_factor_study_runs_from_its_file_to_its_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from studies.cli.command import command

    file = tmp_path / "placement.yaml"
    file.write_text(TEXT)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit) as end:
        command(read_study(file))(["--workers=1"])

    told = capsys.readouterr().out
    assert end.value.code == 0
    assert "gain    Not tested on shift: rope × pre did not learn" in told
    assert "sooner  Not tested on shift: no seed of rope × pre, none × pre got there by" in told
    assert "20 runs in sqlite:///sandbox.db" in told
