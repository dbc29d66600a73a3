"""Masks in configs: names, mappings and expressions, and everything that is none of these."""

from typing import Any

import pytest

from registry import ConfigError, EncoderConfig, build_encoder
from registry.choices import build_mask, resolve
from tests.messages import Messages
from variants.masks import (
    Blocks,
    Causal,
    Dilated,
    Full,
    GlobalTokens,
    Mask,
    Prefix,
    RandomBlocks,
    Window,
)


@pytest.mark.parametrize(
    ("value", "mask"),
    [
        ("full", Full()),
        ("causal", Causal()),
        ({"name": "causal", "align": "last"}, Causal(align="last")),
        ({"name": "window", "left": 2, "right": 0}, Window(left=2, right=0)),
        ("window(radius=1)", Window(radius=1)),
        ("causal & ~window(radius=2)", Causal() & ~Window(radius=2)),
        ("prefix(length=3) | dilated(rate=2)", Prefix(3) | Dilated(2)),
        ("window(radius=2) | global_tokens(count=1)", Window(radius=2) | GlobalTokens(1)),
        (
            "blocks(size=2, radius=1) | global_tokens(count=2) | random_blocks(size=2, seed=1)",
            Blocks(2, radius=1) | GlobalTokens(2) | RandomBlocks(2, seed=1),
        ),
        (" causal ", Causal()),
        ("~(causal | blocks(size=2)) & full", ~(Causal() | Blocks(2)) & Full()),
        ('causal(align="first")', Causal(align="first")),
    ],
)
def test_a_mask_is_a_name_a_mapping_or_an_expression(value: Any, mask: Mask) -> None:
    assert build_mask(resolve("mask", value)) == mask
    assert build_encoder({"mask": value}, seed=0).mask == mask


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("causal&~window( radius = 2 )", "causal & ~window(radius=2)"),
        ("window(radius=2)", {"name": "window", "radius": 2}),
        ("(causal)", "causal"),
        ("(causal & full)", "causal & full"),
    ],
)
def test_spelling_does_not_make_another_config(one: Any, other: Any) -> None:
    assert EncoderConfig(mask=one) == EncoderConfig(mask=other)


@pytest.mark.parametrize("name", ["full", "causal", "causal | full", "causal & full"])
def test_backends_can_tell_a_simple_mask_by_its_class(name: str) -> None:
    assert type(build_encoder({"mask": name}, seed=0).mask) in (Full, Causal)


@pytest.mark.parametrize(
    "value",
    [
        "dense",
        "causal & documents",
        {"name": "padding", "lengths": [1, 2]},
        "causal &",
        "",
        "causal & cusal",
        "causal + full",
        "causal and full",
        "not causal",
        "prefix(2) & causal",
        "window(2, right=1)",
        "windw(2)",
        "causal && full",
        "Causal() & full",
        "window.x(radius=2)",
        "__import__('os')",
        "1",
        "window(radius=causal)",
        "window(radius={[]: 1})",
        "window(radius=1, radius=2)",
        "window(**{'radius': 1})",
        "window(name='full')",
        "window(radius='2')",
        "window(radus=2)",
        "window()",
        "~window(radius=-1)",
        "prefix",
        {"name": "causal & full", "x": 1},
        {"name": "causal", "align": "middle"},
    ],
)
def test_what_is_no_mask_is_one_problem_under_the_key_mask(messages: Messages, value: Any) -> None:
    with messages.raises(ConfigError) as caught:
        EncoderConfig(mask=value)
    (problem,) = caught.value.problems
    assert problem.key.split(".")[0] == "mask"


def test_the_message_shows_what_an_expression_may_say(messages: Messages) -> None:
    with messages.raises(ConfigError) as caught:
        EncoderConfig(mask="causal ^ full")
    assert "got 'causal ^ full'" in str(caught.value)
