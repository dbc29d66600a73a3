"""The builder: weights are a function of the seed and of each parameter's path alone."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from registry import EncoderConfig, build_encoder
from registry.build import seed_of
from variants.attentions import Explicit

SMALL: dict[str, Any] = {"vocab_size": 12, "d_model": 16, "n_heads": 2, "n_layers": 2}


def build(config: Any = SMALL, **changes: Any) -> Any:
    return build_encoder(config, seed=0, **changes)


def weights(seed: int | None = 0, **changes: Any) -> dict[str, Tensor]:
    return build_encoder({**SMALL, **changes}, seed=seed).state_dict()


def differing(one: dict[str, Tensor], other: dict[str, Tensor]) -> set[str]:
    return {key for key in one.keys() & other.keys() if not torch.equal(one[key], other[key])}


def test_one_seed_gives_one_encoder_whatever_happened_before() -> None:
    first = weights()
    torch.rand(17)
    assert differing(first, weights()) == set()


def test_another_seed_gives_other_weights_everywhere_that_is_random() -> None:
    changed = differing(weights(0), weights(1))
    assert {key for key in weights() if key.endswith("weight") and "norm" not in key} >= changed
    assert "embedding.table.weight" in changed
    assert all("bias" not in key for key in changed)


@pytest.mark.parametrize(
    "change",
    [
        {"n_layers": 3},
        {"position": "learned"},
        {"position": "t5_bias"},
        {"norm": "rmsnorm"},
        {"norm_placement": "post"},
        {"n_classes": 5},
        {"attention": "explicit"},
        {"mask": "causal"},
        {"readout": "mean"},
    ],
    ids=str,
)
def test_arms_share_the_weights_of_what_they_have_in_common(change: dict[str, Any]) -> None:
    assert differing(weights(), weights(**change)) == set()


def test_changing_the_feedforward_leaves_the_rest_alone() -> None:
    changed = differing(weights(), weights(feedforward="swiglu"))
    assert all("feedforward" in key for key in changed)


def test_layers_start_with_different_weights() -> None:
    found = weights()
    one, other = (f"blocks.{layer}.feedforward.to_hidden.weight" for layer in range(2))
    assert not torch.equal(found[one], found[other])


def test_without_a_seed_the_weights_follow_torch() -> None:
    torch.manual_seed(5)
    first = weights(seed=None)
    second = weights(seed=None)
    torch.manual_seed(5)
    assert differing(first, weights(seed=None)) == set()
    assert differing(first, second)


def test_a_seed_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    weights(seed=3)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_vector_of_the_pad_id_is_zero() -> None:
    table = weights(pad_id=2)["embedding.table.weight"]
    assert table[2].abs().sum() == 0
    assert (table.abs().sum(dim=1) > 0).sum() == 11


def test_an_encoder_knows_its_config_from_wherever_it_came(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text("vocab_size: 12\nd_model: 16\nn_heads: 2\nn_layers: 2\n")
    config = EncoderConfig(**SMALL)
    for source in (config, SMALL, file, str(file)):
        assert build(source).config == config
    assert build(config, n_layers=1).config.n_layers == 1


def test_what_is_not_asked_for_is_not_built() -> None:
    encoder = build({**SMALL, "vocab_size": None, "norm_placement": "post"})
    assert encoder.embedding is None
    assert encoder.head is None
    assert encoder.final_norm is None
    assert build({**SMALL, "n_classes": 3}).head.out_features == 3


def test_one_position_serves_all_layers_unless_each_gets_its_own() -> None:
    assert len(build(SMALL).positions) == 1
    own = build({**SMALL, "position": "learned", "position_per_layer": True})
    first, second = own.positions
    assert not torch.equal(first.table.weight, second.table.weight)


def test_weights_come_from_the_explicit_backend() -> None:
    encoder = build({**SMALL, "attention": "explicit"})
    assert encoder.reference is encoder.attention
    assert isinstance(build(SMALL).reference, Explicit)


def test_a_seed_depends_on_every_word_of_its_purpose() -> None:
    seeds = {seed_of(*words) for words in [(0, "a"), (1, "a"), (0, "b"), (0, "a", "b"), ("0a",)]}
    assert len(seeds) == 5
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert seed_of(0, "a") == seed_of(0, "a")
