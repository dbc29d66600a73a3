"""What all position encodings share."""

import pytest
import torch

import registry
from registry import build_encoder
from variants import Dims, Encoder
from variants.masks import Dense
from variants.positions import Position

each_position = pytest.mark.parametrize("position", list(registry.positions))
TRAINED = {
    "cope": ["table"],
    "fire": ["c", "stretch", "hidden.weight", "hidden.bias", "to_heads.weight", "to_heads.bias"],
    "kerple": ["p", "a"],
    "learned": ["table.weight"],
    "randomized_learned": ["inner.table.weight"],
    "randomized_transformer_xl": ["inner.u", "inner.v", "inner.to_heads.weight"],
    "shaw": ["table.weight"],
    "t5_bias": ["table"],
    "transformer_xl": ["u", "v", "to_heads.weight"],
}


def build(position: str) -> Encoder:
    mask = "causal" if registry.positions[position].causal_only else "full"
    config = {"d_model": 8, "n_heads": 2, "position": position, "mask": mask}
    return build_encoder(config, seed=0)


@each_position
def test_only_what_is_trained_is_saved(position: str) -> None:
    encoder = build(position)
    if registry.positions.is_builtin(position):
        assert list(encoder.positions[0].state_dict()) == TRAINED.get(position, [])
    trained = dict(encoder.named_parameters())
    assert encoder.state_dict().keys() == trained.keys()


@each_position
def test_a_position_bias_works_with_and_without_a_mask_and_in_both_modes(position: str) -> None:
    encoder = build(position)
    inputs = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    masks = (None, Dense(torch.ones(5, 5) > 0))
    results = [
        encoder.train(mode)(inputs, mask=mask, generator=torch.Generator().manual_seed(1)).hidden
        for mode in (True, False)
        for mask in masks
    ]
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=1e-5, atol=1e-5)


def test_no_seam_that_is_left_alone_adds_anything() -> None:
    index = torch.arange(3).unsqueeze(0)
    q, k = torch.randn(2, 1, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    plain = Position(Dims(8, 2, 4, 1))
    assert plain.place(index, None) is index
    assert plain.embed(index) is plain.bias(index, index) is None
    assert plain.scores(q, k, index, index) is None
    assert plain.rotate(q, k, index, index) == (q, k)


@each_position
def test_what_a_position_adds_reaches_the_output(position: str) -> None:
    """Tables that start at zero are moved first."""
    encoder = build(position).eval()
    with torch.no_grad():
        for parameter in encoder.positions.parameters():
            parameter += torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    inputs = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    seen = encoder(inputs).hidden
    for seam in ("embed", "bias", "scores"):
        setattr(encoder.positions[0], seam, lambda *_: None)
    encoder.positions[0].rotate = lambda q, k, *_: (q, k)  # pyright: ignore
    encoder.positions[0].join = lambda x, _: x  # pyright: ignore
    difference = (encoder(inputs).hidden - seen).abs().max()
    assert (difference > 1e-3) == (position != "none")
