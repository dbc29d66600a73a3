"""Indices of every integer type give what int64 gives; anything else is refused by name."""

import pytest
import torch
from torch import Tensor

from registry import build_encoder
from registry.registry import registry_of
from tests.messages import Messages
from variants.dims import Dims
from variants.positions.alibi import ALiBi

pytestmark = pytest.mark.usefixtures("unchecked")

TYPES = [
    *(torch.uint8, torch.int8, torch.int16, torch.int32),
    *(torch.uint16, torch.uint32, torch.uint64),
]


def config(position: str) -> dict[str, object]:
    causal = {"mask": "causal"} if registry_of("position")[position].causal_only else {}
    return {"vocab_size": 8, "d_model": 16, "n_heads": 2, "position": position, **causal}


def test_a_distance_of_bytes_does_not_wrap_round() -> None:
    """Head 0 of two has slope 2⁻⁴, so that a distance of one costs 1/16, not 255/16."""
    alibi = ALiBi(Dims(d_model=8, n_heads=2, d_head=4, n_layers=1))
    one, zero = (torch.tensor([[n]], dtype=torch.uint8) for n in (1, 0))

    assert alibi.bias(one, zero)[0, 0].item() == -1 / 16


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("position", sorted(registry_of("position")))
def test_positions_of_any_integer_type_are_those_of_int64(
    position: str, dtype: torch.dtype
) -> None:
    encoder = build_encoder(config(position), seed=0).eval()
    tokens = torch.arange(6).expand(2, 6)
    index = torch.tensor([[0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 6, 7]])

    def states(positions: Tensor) -> Tensor:
        return encoder(tokens, positions=positions).hidden

    assert torch.equal(states(index.to(dtype)), states(index))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64], ids=str)
def test_positions_that_are_no_whole_numbers_are_refused(
    messages: Messages, dtype: torch.dtype
) -> None:
    index = torch.ones(1, 3).to(dtype)
    with messages.raises(TypeError):
        build_encoder(config("rope"), seed=0)(torch.ones(1, 3, dtype=torch.long), positions=index)
    alibi = ALiBi(Dims(d_model=8, n_heads=2, d_head=4, n_layers=1))
    with messages.raises(TypeError):
        alibi.bias(index, index)
