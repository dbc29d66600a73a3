"""Contrasts: one thing changes, or it is said what else does."""

from typing import Any

import pytest

from registry import ConfigError
from studies.experiment.contrasts import asked, beside, differences, why_not_asked
from studies.experiment.draft import Draft
from studies.experiment.overrides import gather
from studies.experiment.study import Budget, Study
from tests.messages import Messages
from tests.studies.made_up import check_draft

DEEP = {"encoder": {"norm_placement": "post", "n_layers": 3}}
ARMS = {"pre": {"encoder.norm_placement": "pre"}, "post": {"encoder.norm_placement": "post"}}


def claim(arm: str, against: str, **other: Any) -> dict[str, Any]:
    return {
        "name": f"{arm} {against}", "claim": "they differ", "arm": arm, "against": against,
        "panel": "shift", "lengths": [16], **other,
    }  # fmt: skip


def draft(
    *claims: dict[str, Any],
    variables: tuple[str, ...] = ("encoder.norm_placement",),
    **study: Any,
) -> Draft:
    settings: dict[str, Any] = {
        "panels": [{"task": "shift"}],
        "learning_rates": [1e-3],
        "hypotheses": list(claims),
        **study,
    }
    if "arms" not in settings and "factors" not in settings:
        settings["arms"] = {**ARMS, "deep": DEEP}
    made = Study("s", "?", "?", variables, {"own": Budget("", {})})
    return Draft(made, gather({"study": settings}))


def refused(*claims: dict[str, Any], **study: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        check_draft(draft(*claims, **study))
    return str(caught.value)


def test_arms_that_differ_in_the_variable_alone_are_a_contrast() -> None:
    made = draft(claim("pre", "post"))

    check_draft(made)

    [hypothesis] = asked(made)
    assert [str(one) for one in differences(made, hypothesis)] == [
        "encoder.norm_placement.name: pre against post"
    ]


def test_a_contrast_in_which_more_changes_is_refused_with_what_changes() -> None:
    told = refused(claim("pre", "deep"))

    assert "study.hypotheses (pre deep)" in told
    assert "encoder.n_layers: 2 against 3 beside encoder.norm_placement" in told


def test_a_further_difference_may_be_declared_and_is_then_shown() -> None:
    made = draft(claim("pre", "deep"), also_differs=["encoder.n_layers"])

    check_draft(made)

    [hypothesis] = asked(made)
    assert [one.key for one in beside(made, hypothesis)] == ["encoder.n_layers"]
    assert len(differences(made, hypothesis)) == 2


def test_arms_of_one_config_are_refused() -> None:
    told = refused(arms={"pre": ARMS["pre"], "same": {"encoder": {"norm_placement": "pre"}}})

    assert "pre and same have the same config on shift" in told


def test_a_metric_that_no_run_has_is_refused_before_any_training() -> None:
    told = refused(claim("pre", "post", metric="sklil"))

    assert "no run has the metric 'sklil' without a probe" in told
    assert "skill, accuracy, exact, nll, steps_to_fit" in told


def test_a_metric_may_be_that_of_a_probe() -> None:
    probes = {"evaluation": {"probes": ["gradient_norms"]}}
    panels = [{"task": "shift", **probes}]

    check_draft(draft(claim("pre", "post", metric="gradient_norm"), panels=panels))


FACTORS = {"encoder.norm_placement": ["pre", "post"], "encoder.n_layers": [1, 2]}


def test_in_a_crossed_design_one_factor_moves_in_each_contrast() -> None:
    check_draft(draft(claim("pre × 1", "post × 1"), factors=FACTORS))

    told = refused(claim("pre × 1", "post × 2"), factors=FACTORS)

    assert "differ in encoder.norm_placement and encoder.n_layers" in told


WARMED = {
    "pre": {"encoder.norm_placement": "pre"},
    "post": {"encoder.norm_placement": "post"},
    "post + warm-up": {"encoder.norm_placement": "post", "training.warmup_steps": 9},
}
VARIABLES = ("encoder.norm_placement", "training.warmup_steps")


def test_where_arms_differ_in_several_variables_a_contrast_moves_one_of_them() -> None:
    for arms in (("pre", "post"), ("post + warm-up", "post")):
        check_draft(draft(claim(*arms), arms=WARMED, variables=VARIABLES))

    told = refused(claim("post + warm-up", "pre"), arms=WARMED, variables=VARIABLES)

    assert "differ in encoder.norm_placement and training.warmup_steps" in told
    declared = ["training.warmup_steps"]
    made = draft(
        claim("post + warm-up", "pre"), arms=WARMED, variables=VARIABLES, also_differs=declared
    )
    check_draft(made)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"arm": "lost"}, "no arm 'lost' in this call; its arms: pre, post, deep"),
        ({"panel": "reverse"}, "no panel 'reverse' in this call; its panels: shift"),
        ({"lengths": [16, 17]}, "length 17 is not tested in this call, but 16"),
    ],
)
def test_a_hypothesis_that_a_call_cannot_decide_says_why(other: dict[str, Any], why: str) -> None:
    tested = {"evaluation": {"test_lengths": [16]}}
    made = draft({**claim("pre", "post"), **other}, panels=[{"task": "shift", **tested}])

    assert why_not_asked(made, made.settings.study.hypotheses[0]) == why
    assert asked(made) == []


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"arm": "post"}, "an arm is compared with another; got 'post' twice"),
        ({"directon": "less"}, "unknown key 'directon'; did you mean 'direction'?"),
        ({"direction": "up"}, "study.hypotheses.0.direction"),
        ({"smallest_effect": 0.0}, "smallest_effect must be positive"),
        ({"lengths": []}, "at least one length is needed"),
        ({"lengths": ["16"]}, "study.hypotheses.0.lengths"),
    ],
)
def test_a_hypothesis_is_checked_like_any_setting(other: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        draft({**claim("pre", "post"), **other})

    assert told in str(caught.value)


def test_a_hypothesis_has_a_name_of_its_own(messages: Messages) -> None:
    with messages.raises(ConfigError):
        draft(claim("pre", "post"), claim("pre", "post"))


def test_a_model_in_place_of_the_encoder_is_one_difference() -> None:
    arms = {**ARMS, "gru": {"model": "examples.gru:build"}}

    told = refused(claim("gru", "pre"), arms=arms)
    assert "model.name: examples.gru:build against nothing" in told
    assert "encoder.d_model" not in told

    made = draft(claim("gru", "pre"), arms=arms, also_differs=["model"])
    check_draft(made)
    assert {one.key.split(".")[0] for one in differences(made, asked(made)[0])} == {"model"}
