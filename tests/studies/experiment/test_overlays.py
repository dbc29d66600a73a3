"""Overlays: what laying one over another means."""

import pytest

from registry import ConfigError
from studies.experiment.overlays import leaves, lies_under, merge, nested, refuse_other_roots
from tests.messages import Messages


def test_options_of_the_same_choice_add_up_and_another_choice_replaces() -> None:
    below = {"feedforward": {"name": "gelu", "d_ff": 128}}

    assert merge(below, {"feedforward": {"d_ff": 64}}) == {
        "feedforward": {"name": "gelu", "d_ff": 64}
    }
    assert merge(below, {"feedforward": "gelu"}) == below
    assert merge(below, {"feedforward": "relu"}) == {"feedforward": "relu"}
    assert merge(below, {"feedforward": {"name": "relu"}}) == {"feedforward": {"name": "relu"}}
    assert merge({"norm": "layernorm"}, {"norm": {"eps": 1e-3}}) == {
        "norm": {"name": "layernorm", "eps": 1e-3}
    }


def test_merging_leaves_its_arguments_alone() -> None:
    below, above = {"a": {"b": 1}}, {"a": {"c": 2}}

    merge(below, above)

    assert (below, above) == ({"a": {"b": 1}}, {"a": {"c": 2}})


def test_dotted_keys_are_opened_and_closed_again() -> None:
    dotted = {"encoder.norm.eps": 1e-3, "encoder.n_layers": 4, "task": {"name": "shift", "k": 2}}

    opened = nested(dotted)

    assert opened == {
        "encoder": {"norm": {"eps": 1e-3}, "n_layers": 4},
        "task": {"name": "shift", "k": 2},
    }
    assert dict(leaves(opened)) == dotted


@pytest.mark.parametrize(
    ("key", "place", "inside"),
    [
        ("encoder.norm.eps", "encoder.norm", True),
        ("encoder.norm", "encoder.norm", True),
        ("encoder.norm_placement", "encoder.norm", False),
        ("encoder", "encoder.norm", False),
    ],
)
def test_a_key_lies_under_a_place_by_whole_words(key: str, place: str, inside: bool) -> None:
    assert lies_under(key, [place]) is inside


@pytest.mark.parametrize("overlay", [3, {"encodr": {}}, {"study": {}}, {"encodr.n_layers": 2}])
def test_an_overlay_changes_the_config_of_a_run_and_nothing_else(
    messages: Messages, overlay: object
) -> None:
    with messages.raises(ConfigError):
        refuse_other_roots(overlay, "study.arms")
