"""Configs: nothing is coerced, nothing unknown is accepted, every problem is told at once."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from registry import ConfigError, EncoderConfig, build_encoder
from registry.config import encoder_config
from registry.yaml_file import with_settings
from tests.messages import Messages

HEADS = "n_heads must divide d_model"


def problems(**data: Any) -> list[tuple[str, str]]:
    with pytest.raises(ConfigError) as caught:
        EncoderConfig(**data)
    return [(problem.key, str(problem)) for problem in caught.value.problems]


def only(**data: Any) -> tuple[str, str]:
    (found,) = problems(**data)
    return found


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"n_head": 4}, "n_head"),
        ({"self": 4}, "self"),
        ({"position": {"name": "rope", "thet": 1.0}}, "position.thet"),
        ({"position": {"name": "none", "theta": 1.0}}, "position.theta"),
        ({"dropout": {"embeding": 0.1}}, "dropout.embeding"),
        ({"learning_rate": 0.1}, "learning_rate"),
    ],
)
def test_an_unknown_key_is_told_with_its_place(
    messages: Messages, data: dict[str, Any], key: str
) -> None:
    found, message = only(**data)
    assert found == key
    messages(message)


@pytest.mark.parametrize("value", ["4", 4.0, 4.5, True, None, [4], {"a": 4}])
@pytest.mark.parametrize("key", ["d_model", "n_heads", "n_layers"])
def test_a_size_is_a_whole_number_and_nothing_that_looks_like_one(key: str, value: Any) -> None:
    found, message = only(**{key: value})
    assert found == key
    assert repr(value) in message


@pytest.mark.parametrize("value", ["256", 256.0, True])
def test_an_option_of_a_part_is_as_strict(value: Any) -> None:
    found, message = only(feedforward={"name": "gelu", "d_ff": value})
    assert found == "feedforward.d_ff"
    assert repr(value) in message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bias", 1),
        ("bias", "no"),
        ("embedding_scale", "off"),
        ("position_per_layer", 0),
        ("vocab_size", 0),
        ("n_classes", -1),
        ("n_layers", 0),
        ("pad_id", -1),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("dropout", "0.1"),
        ("dropout", True),
        ("position", 3),
        ("position", None),
        ("position", {"theta": 3.0}),
        ("position", ["rope"]),
    ],
)
def test_a_value_out_of_bounds_is_one_problem(key: str, value: Any) -> None:
    assert only(**{key: value})[0] == key


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_is_finite(value: float) -> None:
    assert only(position={"name": "rope", "theta": value})[0] == "position.theta"


@pytest.mark.parametrize(
    ("d_model", "n_heads", "near"),
    [(10, 3, "1, 2, 5"), (64, 0, "1, 2, 4"), (64, 128, "16, 32, 64"), (1600, 48, "32, 40, 50")],
)
def test_uneven_heads_are_told_with_the_nearest_counts(
    d_model: int, n_heads: int, near: str
) -> None:
    key, message = only(d_model=d_model, n_heads=n_heads)
    assert key == "n_heads"
    assert HEADS in message
    assert f"got d_model={d_model}, n_heads={n_heads}" in message
    assert message.endswith(f"Allowed: {near}.")


def test_a_width_of_heads_makes_any_count_legal() -> None:
    encoder = build_encoder({"d_model": 64, "n_heads": 3, "d_head": 16}, seed=0)
    assert (encoder.dims.n_heads, encoder.dims.d_head) == (3, 16)
    assert encoder(torch.randn(2, 5, 64)).hidden.shape == (2, 5, 64)


def test_no_heads_are_refused_whatever_their_width() -> None:
    assert only(d_model=64, n_heads=0, d_head=16)[0] == "n_heads"


def test_a_huge_width_is_checked_at_once() -> None:
    assert problems(d_model=2**31 - 1, n_heads=2, n_layers=0)[0][0] == "n_layers"


def test_rotary_positions_refuse_an_odd_width_by_name() -> None:
    key, message = only(position="rope", d_model=12, n_heads=4)
    assert key == "position"
    assert "d_head must be even; got d_head=3 (d_model=12, n_heads=4)" in message


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("position", {"name": "learned", "max_length": 0}),
        ("feedforward", {"name": "relu", "d_ff": 0}),
        ("position", {"name": "rope", "theta": 0}),
    ],
)
def test_what_a_part_refuses_is_told_under_its_key(
    messages: Messages, kind: str, value: Any
) -> None:
    key, message = only(**{kind: value})
    assert key == kind
    messages(message)


def test_a_pad_id_is_a_token_id() -> None:
    assert only(vocab_size=4, pad_id=4) == (
        "pad_id",
        "pad_id: pad_id is a token id below vocab_size=4; got 4",
    )
    assert EncoderConfig(vocab_size=4, pad_id=3).pad_id == 3


@pytest.mark.parametrize("kind", ["position", "feedforward", "norm", "norm_placement", "mask"])
def test_an_unknown_part_is_told_with_what_is_known(kind: str) -> None:
    key, message = only(**{kind: "zzz"})
    assert key == kind
    assert f"no {kind} is named 'zzz'" in message
    assert "Allowed: " in message


def test_every_problem_is_told_at_once() -> None:
    found = problems(
        n_head=4,
        d_model=10,
        n_heads=3,
        n_layers="2",
        position="roep",
        feedforward={"name": "gelu", "dff": 3},
        mask="causal & cusal",
        vocab_size=4,
        pad_id=9,
    )
    assert sorted(key for key, _ in found) == [
        *("feedforward.dff", "mask", "n_head", "n_heads", "n_layers", "pad_id", "position"),
    ]
    assert all(f"{key}: " in message for key, message in found)


def test_the_message_holds_every_problem() -> None:
    with pytest.raises(ValueError, match="2 problems:") as caught:
        EncoderConfig(n_head=4, n_layers=0)
    assert str(caught.value).count("\n") == 2


@pytest.mark.parametrize(
    ("dropout", "shares"),
    [
        (0, (0.0, 0.0, 0.0)),
        (0.1, (0.1, 0.1, 0.1)),
        ({"weights": 0.2}, (0.0, 0.2, 0.0)),
        ({"embedding": 0.1, "weights": 0.2, "sublayer": 0.3}, (0.1, 0.2, 0.3)),
    ],
)
def test_dropout_is_a_number_or_a_share_for_each_place(dropout: Any, shares: Any) -> None:
    found = EncoderConfig(dropout=dropout).dropout
    assert (found.embedding, found.weights, found.sublayer) == shares
    assert build_encoder({"dropout": dropout}, seed=0).dropout.p == shares[0]


def write(folder: Path, text: str) -> Path:
    file = folder / "config.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "theta"),
    [("1e-4", 1e-4), ("1e+4", 1e4), ("1.0e-4", 1e-4), ("1.e-4", 1e-4), ("10000", 1e4)],
)
def test_a_number_in_yaml_is_a_number(tmp_path: Path, text: str, theta: float) -> None:
    file = write(tmp_path, f"position: {{name: rope, theta: {text}}}")
    assert encoder_config(file).position.options()["theta"] == theta


@pytest.mark.parametrize(
    "text",
    [
        "bias: no",
        "d_model: 8\nd_model: 16",
        "d_model: [8",
        "- d_model",
        "just text",
        "1: 2",
        "d_modl: 8",
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_the_file(
    messages: Messages, tmp_path: Path, text: str
) -> None:
    file = write(tmp_path, text)
    with messages.raises(ConfigError) as caught:
        encoder_config(file)
    assert str(caught.value).startswith(str(file))


def test_a_file_that_cannot_be_read_is_told(messages: Messages, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.yaml", ".", "binary"):
        with messages.raises(ConfigError):
            encoder_config(tmp_path / name)


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert encoder_config(write(tmp_path, "# nothing\n")) == EncoderConfig()


def test_keywords_replace_what_a_config_says() -> None:
    config = EncoderConfig(d_model=32)
    changed = encoder_config(config, n_heads=8, position="rope")
    assert (changed.d_model, changed.n_heads, changed.position.name) == (32, 8, "rope")
    assert (config.n_heads, config.position.name) == (4, "sinusoidal")


def test_a_config_and_an_encoder_survive_pickling() -> None:
    config = EncoderConfig(vocab_size=5, position="rope", mask="causal & ~window(radius=2)")
    encoder = build_encoder(config, seed=0)

    assert pickle.loads(pickle.dumps(config)) == config
    again = pickle.loads(pickle.dumps(encoder))
    tokens = torch.tensor([[1, 2, 3]])
    assert torch.equal(again(tokens).hidden, encoder(tokens).hidden)


def test_a_setting_whose_value_is_no_yaml_is_told_by_its_key(messages: Messages) -> None:
    with messages.raises(ConfigError):
        with_settings({}, ["norm.eps=[1"])
