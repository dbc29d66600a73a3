"""The study of link ablation: its plan, and its smallest budget done in this process."""

from typing import get_args

import pytest
import torch

from studies.experiment.draft import Draft
from studies.experiment.load import Typed, load_draft
from studies.link_ablation import ARMS, METRICS, STUDY
from studies.links.choices import Choice
from studies.training.execute import execute, forget
from studies.training.outcome import Outcome

TRIED = ("nothing", "top", "keep true", "untrained true")


@pytest.fixture(scope="module")
def smoke() -> Draft:
    return load_draft(STUDY, Typed("smoke"))


@pytest.fixture(scope="module")
def outcomes(smoke: Draft) -> dict[str, Outcome]:
    """One seed of some arms."""
    [label] = smoke.labels()
    configs = {arm: smoke.config(smoke.cell(label, arm)) for arm in TRIED}
    return {arm: execute(config, 0, torch.device("cpu")) for arm, config in configs.items()}


def test_every_panel_has_contrasts_that_change_one_thing() -> None:
    draft = load_draft(STUDY, Typed(options={"seeds": 1}))  # which checks it
    assert len(draft.labels()) == len(draft.settings.study.hypotheses) == 5


def test_every_choice_of_links_is_an_arm() -> None:
    assert {one["perform.choice"] for one in ARMS.values()} == set(get_args(Choice))


def test_beside_a_control_of_matched_weight_stands_that_it_may_reach_less(smoke: Draft) -> None:
    told = {arm for arm, one in smoke.arms.items() if STUDY.remark(one, smoke.settings)}
    assert told == {"mass", "untrained mass"}
    assert "relative_mass" in STUDY.remark(smoke.arms["mass"], smoke.settings)


def test_every_metric_that_is_shown_is_measured(
    outcomes: dict[str, Outcome],
) -> None:
    assert {one.status for one in outcomes.values()} == {"done"}
    measured = {one.metric for outcome in outcomes.values() for one in outcome.scores}
    assert set(METRICS) <= measured


def test_the_arms_of_a_seed_look_into_one_trained_model(outcomes: dict[str, Outcome]) -> None:
    trained = [outcome for arm, outcome in outcomes.items() if not arm.startswith("untrained")]
    assert len({id(outcome.model) for outcome in trained}) == 1
    assert outcomes["untrained true"].model is not trained[0].model
    assert {outcome.provenance["steps"] for outcome in trained} == {20}


def test_a_model_that_others_have_looked_into_gives_the_same_numbers(
    smoke: Draft, outcomes: dict[str, Outcome]
) -> None:
    forget()
    config = smoke.config(smoke.cell(smoke.labels()[0], "top"))
    assert execute(config, 0, torch.device("cpu")).scores == outcomes["top"].scores
