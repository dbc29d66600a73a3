"""Scores multiplied by the logarithm of how many keys a query may attend to."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import registry
from registry import ConfigError, build_encoder
from tests.messages import Messages
from variants import Dims
from variants.attentions import SDPA
from variants.masks import Causal, Dense, Full, Mask, Padding, Sizes, Window

DIMS = Dims(d_model=8, n_heads=2, d_head=4, n_layers=1)
PER_HEAD = torch.stack([torch.eye(5) > 0, torch.ones(5, 5) > 0]).unsqueeze(0)
BACKENDS = [name for name, one in registry.attentions.items() if one.softmax]


def counts(mask: Mask, batch: int = 2, length: int = 5) -> Tensor:
    """How many keys each query sees, (batch, head, query), read off the factors to base e."""
    sizes = Sizes(batch, 2, length, length)
    factor = SDPA(DIMS, length_base=math.e).length_factor(mask, sizes, torch.device("cpu"))
    assert factor is not None
    return factor.exp().round().long().expand(batch, 2, length, 1).squeeze(-1)


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (Full(), [[[5] * 5] * 2] * 2),
        (Causal(), [[[1, 2, 3, 4, 5]] * 2] * 2),
        (Window(radius=1), [[[2, 3, 3, 3, 2]] * 2] * 2),
        (Padding(lengths=[2, 5]), [[[2] * 5] * 2, [[5] * 5] * 2]),
        (Padding(lengths=[2, 5]) & Causal(), [[[1, 2, 2, 2, 2]] * 2, [[1, 2, 3, 4, 5]] * 2]),
        (Dense(PER_HEAD), [[[1] * 5, [5] * 5]] * 2),
        (~Full(), [[[1] * 5] * 2] * 2),
    ],
)
def test_the_keys_of_each_query_are_counted(mask: Mask, expected: list[Any]) -> None:
    assert counts(mask).tolist() == expected


def test_long_sequences_are_counted_slice_by_slice_to_the_same_numbers() -> None:
    assert counts(Causal() & Window(left=300), 1, 700)[0, 0].tolist() == [
        min(query + 1, 301) for query in range(700)
    ]


def encoder(attention: str, **options: Any) -> torch.nn.Module:
    config = {"d_model": 8, "n_heads": 2, "n_layers": 1, "position": "none", "mask": "causal"}
    return build_encoder({**config, "attention": {"name": attention, **options}}, seed=0).eval()


@pytest.mark.parametrize(("base", "power"), [(math.e, math.log), (5.0, lambda n: math.log(n, 5))])
def test_weights_are_raised_to_the_power_of_that_logarithm(base: float, power: Any) -> None:
    inputs = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(0))
    plain = encoder("sdpa")(inputs, need_weights=True).weights[0]
    sharp = encoder("sdpa", length_base=base)(inputs, need_weights=True).weights[0]
    for query in range(5):
        raised = plain[:, :, query] ** power(query + 1)
        raised[..., query + 1 :] = 0
        torch.testing.assert_close(sharp[:, :, query], raised / raised.sum(-1, keepdim=True))


@pytest.mark.parametrize("attention", BACKENDS)
def test_every_backend_multiplies_alike(attention: str) -> None:
    inputs = torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    outputs = [encoder(one, length_base=3.0)(inputs).hidden for one in ("explicit", attention)]
    torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-5)
    grads = [torch.autograd.grad(out.square().sum(), inputs)[0] for out in outputs]
    torch.testing.assert_close(*grads, rtol=1e-5, atol=1e-5)
    assert (outputs[1] - encoder(attention)(inputs).hidden).abs().max() > 1e-3


def test_a_sequence_alone_equals_itself_padded() -> None:
    config = {"vocab_size": 9, "pad_id": 0, "d_model": 8, "n_heads": 2, "position": "rope"}
    built = build_encoder({**config, "attention": {"name": "sdpa", "length_base": 2.0}}, seed=0)
    alone = built(torch.tensor([[3, 1, 4]])).hidden
    for tokens in ([3, 1, 4, 0, 0], [0, 0, 3, 1, 4]):
        row = torch.tensor([tokens])
        torch.testing.assert_close(built(row).hidden[0, row[0] > 0], alone[0])


def test_the_base_is_above_one(messages: Messages) -> None:
    with messages.raises(ConfigError):
        build_encoder({"attention": {"name": "sdpa", "length_base": 1.0}})
