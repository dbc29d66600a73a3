"""Fingerprints: equal configs have equal hashes, and every leaf counts."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import registry
from registry import EncoderConfig
from registry.config import hash_of, without_defaults

BASE: dict[str, Any] = {
    "vocab_size": 16,
    "d_model": 24,
    "n_heads": 4,
    "position": {"name": "learned", "max_length": 64},
    "feedforward": {"name": "gelu", "d_ff": 48},
    "norm": {"name": "layernorm", "eps": 1e-5},
    "mask": {"name": "window", "radius": 3},
    "dropout": {"embedding": 0.1, "weights": 0.1, "sublayer": 0.1},
}

CHANGES: list[dict[str, Any]] = [
    {"vocab_size": 17},
    {"vocab_size": None},
    {"n_classes": 3},
    {"d_model": 48},
    {"n_heads": 2},
    {"d_head": 8},
    {"n_layers": 3},
    {"position": "rope"},
    {"position": {"name": "learned", "max_length": 65}},
    {"position_per_layer": True},
    {"feedforward": "relu"},
    {"feedforward": {"name": "gelu", "d_ff": 49}},
    {"norm": "rmsnorm"},
    {"norm": {"name": "layernorm", "eps": 1e-6}},
    {"norm_placement": "post"},
    {"mask": "window(radius=4)"},
    {"mask": "causal & window(radius=3)"},
    {"attention": "explicit"},
    {"readout": "mean"},
    {"initializer": "normal"},
    {"initializer": {"name": "normal", "std": 0.5}},
    {"dropout": {"embedding": 0.2, "weights": 0.1, "sublayer": 0.1}},
    {"dropout": {"embedding": 0.1, "weights": 0.2, "sublayer": 0.1}},
    {"dropout": {"embedding": 0.1, "weights": 0.1, "sublayer": 0.2}},
    {"embedding_scale": False},
    {"pad_id": 0},
    {"pad_id": 1},
    {"bias": False},
    {"share_layers": True},
    {"gradient_checkpointing": True},
    {"attention": {"name": "sdpa", "scale": "none"}},
    {"attention": {"name": "sdpa", "n_kv_heads": 2}},
    {"attention": {"name": "sdpa", "qk_norm": True}},
]


def fingerprint(**data: Any) -> str:
    return hash_of(without_defaults(EncoderConfig(**data)))


def test_every_leaf_changes_the_hash() -> None:
    hashes = [fingerprint(**{**BASE, **change}) for change in [{}, *CHANGES]]
    assert len(set(hashes)) == len(hashes)


def test_every_key_of_a_config_is_among_the_changes() -> None:
    assert {key for change in CHANGES for key in change} == set(EncoderConfig.model_fields)


@settings(deadline=None, max_examples=30)
@given(st.permutations(list(BASE)))
def test_the_order_of_keys_changes_nothing(keys: list[str]) -> None:
    assert fingerprint(**{key: BASE[key] for key in keys}) == fingerprint(**BASE)


@settings(deadline=None, max_examples=30)
@given(st.sets(st.sampled_from(sorted(EncoderConfig.model_fields))))
def test_saying_a_default_changes_nothing(keys: set[str]) -> None:
    said = {key: EncoderConfig.model_fields[key].default for key in keys}
    assert fingerprint(**said) == fingerprint()


def test_saying_the_default_of_an_option_changes_nothing() -> None:
    assert fingerprint(position={"name": "rope", "theta": 10000}) == fingerprint(position="rope")
    assert fingerprint(position={"name": "sinusoidal"}) == fingerprint()
    assert fingerprint(dropout=0.1) == fingerprint(
        dropout={"sublayer": 0.1, "weights": 0.1, "embedding": 0.1}
    )


def test_only_what_differs_from_the_defaults_is_kept() -> None:
    assert without_defaults(EncoderConfig()) == {}
    assert without_defaults(EncoderConfig(**BASE)) == {
        "vocab_size": 16,
        "d_model": 24,
        "position": {"name": "learned", "max_length": 64},
        "feedforward": {"name": "gelu", "d_ff": 48},
        "mask": {"name": "window", "radius": 3},
        "dropout": {"embedding": 0.1, "weights": 0.1, "sublayer": 0.1},
    }


def test_what_is_kept_makes_the_same_config() -> None:
    config = EncoderConfig(**BASE)
    assert EncoderConfig(**without_defaults(config)) == config


@pytest.mark.parametrize("change", [{}, *CHANGES], ids=str)
def test_a_config_survives_its_dump_and_json(change: dict[str, Any]) -> None:
    config = EncoderConfig(**{**BASE, **change})
    assert EncoderConfig(**config.model_dump()) == config
    assert EncoderConfig(**json.loads(json.dumps(config.model_dump(mode="json")))) == config
    assert hash_of(without_defaults(EncoderConfig(**config.model_dump()))) == hash_of(
        without_defaults(config)
    )


def test_a_config_is_frozen_and_a_value() -> None:
    config = EncoderConfig(position="rope")
    with pytest.raises(ValueError, match="frozen"):
        config.d_model = 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="frozen"):
        config.position.name = "alibi"  # pyright: ignore[reportAttributeAccessIssue]
    assert hash(config) == hash(EncoderConfig(position="rope"))


@pytest.mark.parametrize("kind", ["positions", "feedforwards", "norms", "readouts"])
def test_every_built_in_name_is_a_config_by_itself(kind: str) -> None:
    table = getattr(registry, kind)
    # Some positions are right under a causal mask alone, and none is wrong there.
    hashes = {fingerprint(**{table.kind: name, "mask": "causal"}) for name in table}
    assert len(hashes) == len(table)


def test_a_fingerprint_is_short_and_known() -> None:
    assert hash_of({}) == "44136fa355b3678a"
    assert hash_of({"b": [1, 2], "a": None}) == hash_of({"a": None, "b": [1, 2]})
    assert hash_of({"a": 1}) != hash_of({"a": "1"})
