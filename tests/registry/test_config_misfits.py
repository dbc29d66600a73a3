"""Parts that do not fit one another are refused before anything runs."""

from typing import Any

import pytest

import registry
from registry import ConfigError, EncoderConfig, build_encoder
from tests.messages import Messages

SIZES: dict[str, Any] = {"vocab_size": 12, "d_model": 16, "n_heads": 2, "n_layers": 1}

CAUSAL_ONLY: list[Any] = [
    *(name for name, part in registry.positions.items() if part.causal_only),
    {"name": "alibi", "sides": "causal"},
    {"name": "t5_bias", "bidirectional": False},
    {"name": "randomized", "inner": "xpos"},
    {"name": "randomized", "inner": {"name": "alibi", "sides": "causal"}},
]
each_causal_position = pytest.mark.parametrize("position", CAUSAL_ONLY, ids=str)

SHOW_LATER_KEYS = [
    "full",
    "window(radius=2)",
    "prefix(length=2)",
    "causal | prefix(length=2)",
    "causal | ~window(radius=900)",
    "~causal",
    "blocks(size=4)",
    "window(left=3, right=1)",
    "random_blocks(size=2, count=1) | causal",
]
WITHIN_CAUSAL = [
    "causal",
    'causal(align="last")',
    "causal & window(left=8)",
    "causal & (window(left=2) | prefix(length=1))",
    "causal & ~window(radius=2)",
    "(causal & dilated(rate=2)) | (causal & window(radius=1))",
    "window(left=3, right=0)",
    "window(right=0)",
]


def test_the_parts_that_hold_for_causal_masks_alone_are_known() -> None:
    assert {"xpos", "cope"} <= {str(one) for one in CAUSAL_ONLY}


@each_causal_position
def test_a_position_for_causal_masks_is_refused_under_a_full_one(position: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        build_encoder({**SIZES, "position": position})
    (problem,) = caught.value.problems
    name = position if isinstance(position, str) else position["name"]
    assert problem.key == "position"
    assert problem.rule.startswith(f"{name}(")
    assert "keys up to the query alone, and the mask 'full' lets queries see later" in problem.rule
    assert "set mask: causal" in problem.rule


@each_causal_position
def test_it_is_built_under_a_causal_mask(position: Any) -> None:
    build_encoder({**SIZES, "position": position, "mask": "causal"}, seed=0)


@pytest.mark.parametrize("mask", SHOW_LATER_KEYS)
def test_every_mask_that_shows_a_later_key_is_refused(messages: Messages, mask: str) -> None:
    with messages.raises(ConfigError):
        EncoderConfig(position="xpos", mask=mask)
    EncoderConfig(position="rope", mask=mask)


@pytest.mark.parametrize("mask", WITHIN_CAUSAL)
def test_every_mask_within_a_causal_one_will_do_however_it_is_written(mask: str) -> None:
    EncoderConfig(position="xpos", mask=mask)


def test_the_same_part_with_options_for_both_directions_takes_any_mask() -> None:
    for position in ("alibi", "t5_bias", {"name": "alibi", "sides": "two_sided"}):
        EncoderConfig(position=position, mask="full")


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        EncoderConfig(position="xpos", attention="linear", n_layers=0)
    assert [problem.key for problem in caught.value.problems] == ["n_layers"]
    with pytest.raises(ConfigError) as caught:
        EncoderConfig(position="xpos", attention="linear")
    assert sorted(problem.key for problem in caught.value.problems) == ["attention", "position"]
