"""Positions in channels of their own."""

import pytest
import torch

from registry import ConfigError, build_encoder
from tests.messages import Messages
from variants import Dims
from variants.positions import Concatenated, Sinusoidal

DIMS = Dims(6, 2, 3, 1)


def test_tokens_and_positions_lie_side_by_side() -> None:
    """As torch.cat of narrower token vectors with the first channels of the encoding."""
    part, index = Concatenated(DIMS, Sinusoidal(DIMS), width=2), torch.arange(4).unsqueeze(0)
    tokens = torch.randn(3, 4, 6)

    joined = part.join(tokens, index)

    waves = torch.stack([torch.arange(4.0).sin(), torch.arange(4.0).cos()], dim=-1)
    torch.testing.assert_close(joined, torch.cat([tokens[..., :4], waves.expand(3, 4, 2)], dim=-1))


def test_half_of_the_channels_are_the_default() -> None:
    assert Concatenated(DIMS, Sinusoidal(DIMS)).width == 3


def test_what_tokens_say_in_those_channels_is_lost_in_a_whole_encoder() -> None:
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "vocab_size": None}
    encoder = build_encoder({**sizes, "position": {"name": "concatenated", "width": 3}}, seed=0)
    tokens = torch.randn(2, 5, 8)
    other = tokens.clone()
    other[..., 5:] += 1.0
    assert torch.equal(encoder(tokens).hidden, encoder(other).hidden)
    other[..., 4] += 1.0
    assert not torch.equal(encoder(tokens).hidden, encoder(other).hidden)


@pytest.mark.parametrize(
    "position",
    [
        {"inner": "rope"},
        {"inner": "none"},
        {"inner": "randomized"},
        {"width": 8},
        {"width": 0},
    ],
)
def test_what_leaves_no_channels_or_does_more_is_refused(
    messages: Messages, position: dict
) -> None:
    with messages.raises(ConfigError):
        build_encoder(
            {"d_model": 8, "n_heads": 2, "position": {"name": "concatenated", **position}}
        )
