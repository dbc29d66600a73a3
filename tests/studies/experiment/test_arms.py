"""Arms: from what is written to overlays."""

from typing import Any

import pytest

from registry import ConfigError, UnknownNameError
from studies.experiment.arms import Arm, bare, crossed, read_arms, read_factors, select
from tests.messages import Messages

POSITION = ("encoder.position",)


def overlays(given: Any, variables: tuple[str, ...] = POSITION) -> dict[str, dict[str, Any]]:
    return {arm.name: arm.over(variables) for arm in read_arms(given)}


def test_a_bare_name_is_a_value_of_the_one_variable() -> None:
    assert overlays(["none", "rope"]) == {
        "none": {"encoder": {"position": "none"}},
        "rope": {"encoder": {"position": "rope"}},
    }


def test_a_bare_value_need_not_be_a_name() -> None:
    assert overlays([1, 2], ("encoder.n_heads",)) == {
        "1": {"encoder": {"n_heads": 1}},
        "2": {"encoder": {"n_heads": 2}},
    }
    assert bare("8").value == 8
    assert bare("none").value == "none"


def test_an_arm_may_change_anything_under_a_name_of_its_own() -> None:
    deep = {"encoder.norm_placement": "post", "encoder": {"n_layers": 12}, "training.steps": 9}
    expected = {"encoder": {"norm_placement": "post", "n_layers": 12}, "training": {"steps": 9}}

    assert overlays({"post-12": deep, "rope": None}) == {
        "post-12": expected,
        "rope": {"encoder": {"position": "rope"}},
    }
    assert overlays([{"post-12": deep}, "rope"]) == overlays({"post-12": deep, "rope": None})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (3, "arms are a list of values"),
        ([], "at least one is needed"),
        (["rope", "rope"], "each is given once; got 'rope' 2 times"),
        ({"a": {"encodr": {}}}, "got 'encodr"),
        ({"a": 3}, "an overlay holds keys"),
    ],
)
def test_arms_that_say_nothing_are_refused(given: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_arms(given)


@pytest.mark.parametrize("variables", [(), ("encoder.position", "encoder.norm")])
def test_a_bare_arm_needs_exactly_one_variable(
    messages: Messages, variables: tuple[str, ...]
) -> None:
    with messages.raises(ConfigError):
        bare("rope").over(variables)


FACTORS = read_factors(
    {
        "encoder.position": ["rope", {"name": "alibi"}],
        "encoder.norm_placement": {"before": "pre", "after": "post"},
    }
)


def test_factors_are_crossed_and_every_arm_knows_its_levels() -> None:
    arms = crossed(FACTORS)

    assert [arm.name for arm in arms] == [
        "rope × before", "rope × after", "alibi × before", "alibi × after",
    ]  # fmt: skip
    assert arms[1].over(()) == {"encoder": {"position": "rope", "norm_placement": "post"}}
    assert arms[2].levels == {"encoder.position": "alibi", "encoder.norm_placement": "before"}


def test_levels_of_one_part_are_told_apart_by_their_options() -> None:
    found = read_factors(
        {"encoder.position": [{"name": "rope", "theta": 10.0}, {"name": "rope", "theta": 100.0}]}
    )

    assert list(found["encoder.position"]) == ["rope(theta=10.0)", "rope(theta=100.0)"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([1], "factors map dotted keys"),
        ({"encoder.n_heads": []}, "levels are a list of values"),
        ({"encoder.n_heads": [1, 1]}, "each level is given once"),
        ({"encodr.n_heads": [1, 2]}, "got 'encodr"),
    ],
)
def test_factors_that_say_nothing_are_refused(given: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_factors(given)


def test_arms_are_selected_by_name_in_the_order_asked_for() -> None:
    declared = [*crossed(FACTORS), Arm("plain", overlay={})]

    assert select(declared, None, bare_too=False) == declared
    assert [arm.name for arm in select(declared, ["plain", "alibi x after"], bare_too=False)] == [
        "plain",
        "alibi × after",
    ]


def test_a_name_that_is_not_declared_is_a_bare_value_or_an_error(messages: Messages) -> None:
    declared = read_arms(["rope"])

    assert select(declared, ["mine"], bare_too=True) == [bare("mine")]
    with messages.raises(UnknownNameError):
        select(declared, ["roep"], bare_too=False)
