"""Where something was written, and settings without what is wrong in them."""

from pathlib import Path
from typing import Any

import pytest

from registry.errors import Problem
from studies.experiment.overlays import Layer
from studies.experiment.overrides import at_origin, holds, without

DATA: dict[str, Any] = {"a": {"b": [{"c": 1}, {"d": 2}], "x.y": {"z": 3}}, "e": 4}


@pytest.mark.parametrize(
    ("path", "there"),
    [("a.b.0.c", True), ("a.b.1.c", False), ("a.b.2", False), ("a.x.y.z", True), ("a.x", False)],
)
def test_a_path_leads_through_mappings_lists_and_dotted_keys(path: str, there: bool) -> None:
    assert holds(DATA, path) is there


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        (["e"], {"a": DATA["a"]}),
        (["a.b.0.c"], {"a": {"b": [{}, {"d": 2}], "x.y": {"z": 3}}, "e": 4}),
        (["a.b.0.missing"], {"a": {"b": [{"d": 2}], "x.y": {"z": 3}}, "e": 4}),
        (["a.b.0", "a.b.1"], {"a": {"b": [], "x.y": {"z": 3}}, "e": 4}),
        (["a.x.y.z"], {"a": {"b": DATA["a"]["b"], "x.y": {}}, "e": 4}),
        (["nowhere"], DATA),
    ],
)
def test_what_is_wrong_is_left_out_and_what_lacks_a_key_goes_whole(
    paths: list[str], left: dict[str, Any]
) -> None:
    assert without(DATA, [path.split(".") for path in paths]) == left


def test_the_uppermost_layer_that_says_a_key_is_told() -> None:
    file = Path("mine.yaml")
    layers = [
        Layer({"task": {"k": 0}}),
        Layer({"training": {"steps": -1}}, file, "budgets.quick"),
        Layer({"training": {"steps": -2, "clip": 1}}, file),
    ]

    told = [
        (one.key, one.file)
        for key in ("study.panels.0.task.k", "training.steps", "training.clip", "elsewhere")
        for one in [at_origin(Problem(key, "wrong"), layers)]
    ]

    assert told == [
        ("task.k", None),
        ("budgets.quick.training.steps", "mine.yaml"),
        ("training.clip", "mine.yaml"),
        ("elsewhere", None),
    ]
