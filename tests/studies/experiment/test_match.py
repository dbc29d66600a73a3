"""Matching: arms are brought to one size or cost, or refused before anything is trained."""

from typing import Any

import pytest

from registry import ConfigError
from studies.analysis.printing import cost_lines
from studies.experiment.contrasts import asked, differences
from studies.experiment.draft import Draft
from studies.experiment.freeze import protocol_of
from studies.experiment.match import Costs, Match, costs_of, matched
from studies.experiment.overrides import gather
from studies.experiment.plan import Plan
from studies.experiment.resolve import resolve
from studies.experiment.study import Budget, Study
from studies.report.findings import differences as changed
from tests.messages import Messages
from tests.studies.made_up import check_draft

D, WIDE = 16, 60
GELU = {"encoder.feedforward": {"name": "gelu", "d_ff": WIDE}}
ARMS = {"gelu": GELU, "swiglu": {"encoder.feedforward": "swiglu"}}
CLAIM = {
    "name": "gate", "claim": "it helps", "arm": "swiglu", "against": "gelu", "panel": "shift",
    "lengths": [16],
}  # fmt: skip


def draft(
    match: Any, arms: Any = None, variable: str = "encoder.feedforward", **study: Any
) -> Draft:
    position = {} if variable == "encoder.position" else {"position": "none"}
    settings = {
        "encoder": {"d_model": D, "n_heads": 2, "n_layers": 1, **position},
        "training": {"steps": 100, "batch_size": 4, "train_lengths": [2, 8]},
        "evaluation": {"test_lengths": [8, 16]},
        "study": {
            "panels": [{"task": {"name": "shift", "k": 1}}],
            "arms": arms or ARMS,
            "match": match,
            "learning_rates": [1e-3],
            **study,
        },
    }
    made = Study("s", "?", "?", (variable,), {"own": Budget("", {})})
    return Draft(made, gather(settings))


def resolved(match: Any) -> Plan:
    return resolve(draft(match))


def costs(made: Draft) -> dict[str, Costs]:
    return {cell.arm: costs_of(made.config(cell)) for cell in made.cells()}


def refused(made: Draft) -> str:
    with pytest.raises(ConfigError) as caught:
        check_draft(made)
    return str(caught.value)


def d_ff(made: Draft, arm: str) -> int:
    return made.config(made.cell("shift", arm)).plain()["encoder"]["feedforward"]["d_ff"]


def test_a_gated_layer_is_made_as_large_as_a_plain_one() -> None:
    """Plain: 2·16·60 + 60 + 16 = 1,996 weights; gated, 50 a unit: 40 units make 2,016."""
    made = draft("parameters")

    check_draft(made)

    assert (d_ff(made, "gelu"), d_ff(made, "swiglu")) == (WIDE, 40)
    found = costs(made)
    assert found["swiglu"].parameters == (found["gelu"].parameters or 0) + 2_016 - 1_996


def test_a_gated_layer_is_made_as_dear_as_a_plain_one() -> None:
    """Two matrices of 16 × 60 are three of 16 × 40."""
    made = draft({"what": "flops_per_token", "within": 0.0})

    assert d_ff(made, "swiglu") == 40
    assert costs(made)["swiglu"].flops_per_token == costs(made)["gelu"].flops_per_token


def test_without_a_rule_nothing_is_adjusted() -> None:
    assert d_ff(draft(None), "swiglu") is None


def test_an_arm_that_is_near_enough_is_left_alone() -> None:
    arms = {"gelu": GELU, "swiglu": {"encoder.feedforward": {"name": "swiglu", "d_ff": 41}}}

    assert d_ff(draft({"what": "parameters", "within": 0.05}, arms), "swiglu") == 41
    assert d_ff(draft({"what": "parameters", "within": 0.01}, arms), "swiglu") == 40


def test_the_knob_is_a_multiple_of_its_step() -> None:
    """32 and 48 units are as near to the 39.6 that would be exact, but for a little."""
    arms = {"gelu": GELU, "swiglu": {"encoder.feedforward": {"name": "swiglu", "d_ff": 100}}}
    made = draft({"what": "parameters", "step": 16, "within": 0.2}, arms)

    assert d_ff(made, "swiglu") == 32


def test_batches_of_other_sizes_get_as_many_tokens() -> None:
    arms = {"4": None, "10": None}
    made = draft("tokens", arms, "training.batch_size")

    check_draft(made)

    assert {arm: (one.steps, one.tokens) for arm, one in costs(made).items()} == {
        "4": (100, 2_000), "10": (40, 2_000)
    }  # fmt: skip


def test_steps_are_matched_by_steps() -> None:
    arms = {"gelu": GELU, "swiglu": {"encoder.feedforward": "swiglu", "training.steps": 50}}

    assert costs(draft("steps", arms))["swiglu"].steps == 100


@pytest.mark.parametrize(
    ("match", "told"),
    [
        (
            {"what": "parameters", "within": 0.0001},
            r"of 3,\d+ parameters the nearest is 3,\d+ \(\+0\.\d %\) at "
            r"encoder.feedforward.d_ff=40, and 0.01 % is allowed; adjust another key "
            r"\(encoder.d_model\)",
        ),
        (
            {"what": "parameters", "adjust": "training.steps"},
            "training.steps does not change the parameters of swiglu; study.match.adjust can be "
            "encoder.feedforward.d_ff or encoder.d_model",
        ),
        ({"what": "parameters", "adjust": "encoder.d_model"}, "say which multiples it takes"),
        ({"what": "parameters", "to": "gleu"}, "study.match.to: .*'gleu'.*'gelu'"),
        ({"what": "parameters", "adjust": "encoder.feedforward"}, "what the arms differ in"),
        ({"what": "tokens", "adjust": "training.learning_rate"}, "is tuned"),
        ({"what": "tokens", "adjust": "evaluation.examples"}, "a knob is a key of encoder"),
    ],
    ids=lambda one: None if isinstance(one, str) else "-".join(map(str, one.values())),
)
def test_what_cannot_be_matched_is_refused_with_what_would_help(match: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        check_draft(draft(match))


def test_a_layer_without_a_width_cannot_be_widened() -> None:
    told = refused(draft("parameters", {"gelu": GELU, "none": {"encoder.feedforward": "none"}}))

    assert "none cannot be matched: encoder.feedforward.d_ff=1 is refused" in told


@pytest.mark.parametrize("match", ["parameter", {"what": "parameters", "tolerance": 0.1}])
def test_a_rule_is_checked_like_any_setting(messages: Messages, match: Any) -> None:
    with messages.raises(ConfigError):
        draft(match)


def test_the_reference_need_not_be_asked_for() -> None:
    assert d_ff(draft("parameters", only=["swiglu"]), "swiglu") == 40


def test_a_new_arm_changes_no_other_one() -> None:
    more = {**ARMS, "geglu": {"encoder.feedforward": "geglu"}}

    def identities(made: Draft) -> set[str]:
        plan = resolve(made)
        return {
            run.identity
            for cell in plan.cells()
            for run in plan.confirming(cell, plan.protocol.tried[0])
        }

    assert identities(draft("parameters")) < identities(draft("parameters", more))


def test_the_knob_may_differ_between_the_arms_of_a_contrast_and_is_shown() -> None:
    arms = {
        "none": {"encoder.position": "none"},
        "learned": {"encoder.position": {"name": "learned", "max_length": 16}},
    }
    claim = {**CLAIM, "arm": "learned", "against": "none"}
    made = draft("parameters", arms, "encoder.position", hypotheses=[claim])

    check_draft(made)

    shown = [str(one) for one in differences(made, asked(made)[0])]
    assert any(one.startswith("encoder.feedforward.d_ff: ") for one in shown)


def test_the_rule_is_part_of_the_frozen_protocol() -> None:
    free, bound = (protocol_of(draft(one)) for one in (None, "parameters"))

    assert bound["match"]["what"] == "parameters"
    assert free["frame"] != bound["frame"]


def test_the_table_of_costs_says_what_is_matched_by_what() -> None:
    lines = list(cost_lines(resolved("parameters")))

    assert lines[0] == "What changed between arms on shift:"
    assert lines[1].split("  ")[-1] == "encoder.feedforward.d_ff"
    assert lines[3].split()[0] == "swiglu"
    assert lines[3].split()[-1] == "40"
    assert lines[-1] == ("Matched to gelu: parameters within 1 %, by encoder.feedforward.d_ff.")


def test_a_report_says_what_is_matched_and_every_cost() -> None:
    rows = dict(changed(resolved("parameters")))

    assert rows["steps"] == {"gelu": "100", "swiglu": "100"}
    assert rows["training tokens"] == {"gelu": "2,000", "swiglu": "2,000"}
    assert rows["matched: parameters within 1 %, by encoder.feedforward.d_ff"] == {
        "gelu": "reference", "swiglu": "matched"
    }  # fmt: skip


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("target", [7, 17, 18, 1_000, 123_456])
def test_the_nearest_value_is_found_in_few_looks(power: int, target: int) -> None:
    """Against all values of a knob, tried one after the other."""
    looked: list[int] = []

    def turned(value: int | None) -> Any:
        looked.append(value or 0)
        return 10**9 if value is None else 7 * value**power

    from studies.experiment import match as matching

    match = Match(what="steps", within=0.9999)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "COUNTED", {"steps": lambda one: one})
        found = matched(match, ("arm", "reference"), float(target), turned)

    assert found == min(range(1, 20_000), key=lambda one: abs(7 * one**power - target))
    assert len(looked) < 30
