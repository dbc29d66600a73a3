"""Readouts against loops over the real tokens."""

from typing import Any

import pytest
import torch
from torch import Tensor

import registry
from variants import Dims
from variants.readouts.attention_pooling import AttentionPooling

HIDDEN = torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(0))
KEEP = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 0, 1, 0]]).bool()
LOOPS = {
    "first": lambda states: states[0],
    "last": lambda states: states[-1],
    "mean": lambda states: sum(states) / len(states),
    "max": lambda states: torch.stack(states).amax(0),
    "weighted_mean": lambda states: (
        sum(t * state for t, state in enumerate(states, start=1)) / sum(range(1, len(states) + 1))
    ),
    "attention_pooling": lambda states: sum(states) / len(states),  # its query starts at 0
}


def read(name: str, hidden: Tensor, keep: Tensor | None) -> Tensor:
    return registry.readouts[name](Dims(3, 1, 3, 1))(hidden, keep)


@pytest.mark.parametrize(("name", "loop"), LOOPS.items())
def test_a_readout_is_its_rule_over_the_real_tokens(name: str, loop: Any) -> None:
    hidden = HIDDEN.masked_fill(~KEEP.unsqueeze(-1), 0)
    rows = [
        [state for state, real in zip(*row, strict=True) if real]
        for row in zip(hidden, KEEP, strict=True)
    ]
    torch.testing.assert_close(read(name, hidden, KEEP), torch.stack([loop(row) for row in rows]))
    everything = torch.stack([loop(list(row)) for row in HIDDEN])
    torch.testing.assert_close(read(name, HIDDEN, None), everything)


def test_the_rule_of_every_readout_is_tried_here() -> None:
    assert {*LOOPS} == {*registry.readouts} - {"tokens"}


def test_attention_pooling_weighs_tokens_by_their_likeness_to_its_query() -> None:
    pooling = AttentionPooling(Dims(3, 1, 3, 1))
    query = torch.tensor([1.0, -2.0, 0.5])
    with torch.no_grad():
        pooling.query.copy_(query)
    hidden = HIDDEN.masked_fill(~KEEP.unsqueeze(-1), 0)
    for row, real, found in zip(hidden, KEEP, pooling(hidden, KEEP), strict=True):
        states = row[real]
        shares = (states @ query / 3**0.5).exp()
        torch.testing.assert_close(found, shares @ states / shares.sum())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_attention_pooling_holds_its_weights_in_single_precision(dtype: torch.dtype) -> None:
    pooling = AttentionPooling(Dims(3, 1, 3, 1)).to(dtype)
    ones = torch.ones(1, 3000, 3, dtype=dtype)
    torch.testing.assert_close(pooling(ones, None).float(), torch.ones(1, 3), rtol=1e-2, atol=0)


@pytest.mark.parametrize("keep", [None, KEEP], ids=["all real", "padded"])
def test_tokens_are_read_as_they_are(keep: Tensor | None) -> None:
    assert torch.equal(read("tokens", HIDDEN, keep), HIDDEN)


@pytest.mark.parametrize("name", list(registry.readouts))
def test_a_sequence_without_real_tokens_reads_zero_and_its_gradient_is_finite(name: str) -> None:
    hidden = torch.zeros(1, 5, 3, requires_grad=True)
    out = read(name, hidden, torch.zeros(1, 5).bool())
    (gradient,) = torch.autograd.grad(out.sum(), hidden)
    assert out.eq(0).all()
    assert gradient.isfinite().all()
