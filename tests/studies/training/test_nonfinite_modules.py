"""The layer that first loses a number is named."""

import pytest
import torch

from registry import build_encoder
from studies.training.loop import first_nonfinite_module, place_of
from variants import Encoder


def build() -> Encoder:
    return build_encoder(
        {"vocab_size": 5, "d_model": 8, "n_heads": 2, "n_layers": 3, "norm_placement": "pre"},
        seed=0,
    )


def lost(encoder: Encoder) -> str | None:
    return first_nonfinite_module(encoder, lambda: encoder(torch.tensor([[1, 2, 3, 4]])))


@pytest.mark.parametrize("path", ["blocks.1.feedforward.to_hidden", "blocks.2.attention.to_v"])
def test_the_innermost_module_at_fault_is_named_with_its_layer(path: str) -> None:
    encoder = build()
    weight: torch.Tensor = encoder.get_submodule(path).weight  # type: ignore[assignment]
    with torch.no_grad():
        weight[0] = torch.inf
    assert lost(encoder) == path
    assert place_of(path).endswith(f"those of layer {path[7]} ({path})")


def test_a_row_whose_squares_overflow_is_lost_in_the_norm_that_meets_it() -> None:
    encoder = build()
    assert encoder.embedding is not None
    with torch.no_grad():
        encoder.embedding.table.weight[2] = torch.tensor([1e30, -1e30, 2e30, 0.0] * 2)
    assert lost(encoder) == "blocks.0.joins.0.before"


def test_nothing_is_told_of_a_sound_model() -> None:
    encoder = build()
    assert lost(encoder) is None
    assert place_of(None) == ""
    assert not any(module._forward_hooks for module in encoder.modules())
