"""Attention: entropies and offsets, against weights that are known."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from studies.probes.attention import Attention
from studies.probes.probe import ProbeContext
from tests.messages import Messages
from tests.studies.probes.contexts import context, gru


class Shows(nn.Module):
    """Returns weights that are given."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.weights = weights

    def forward(self, tokens: Tensor, need_weights: bool) -> SimpleNamespace:
        return SimpleNamespace(weights=(self.weights.expand(len(tokens), 1, -1, -1),))


def looked(weights: Tensor, offsets: int = 0) -> dict[tuple[str, int | None], float | None]:
    made = context()
    shown = ProbeContext(Shows(weights), made.task, made.config, made.seeds, made.device)
    measured = Attention(examples=4, offsets=offsets).measure(shown)
    return {(one.metric, one.bin): one.value for one in measured}


def test_even_weights_have_the_entropy_of_their_number() -> None:
    found = looked(torch.full((7, 7), 1 / 7))

    assert found["attention_entropy", 0] == pytest.approx(math.log(7))
    assert found["attention_top", 0] == pytest.approx(1 / 7)


def test_a_single_link_has_no_entropy_and_its_offset_has_all_the_weight() -> None:
    """Every query looks one back, the first at itself: 6 of 6 diagonal entries, 1 of 7."""
    weights = torch.eye(7).roll(-1, dims=1)
    weights[6] = 0
    weights = torch.cat([torch.eye(7)[:1], torch.eye(7)[:-1]])

    found = looked(weights, offsets=2)

    assert found["attention_entropy", 0] == 0
    assert found["attention_top", 0] == 1
    assert [found["attention_offset.0", offset] for offset in range(-2, 3)] == [
        0, 1, pytest.approx(1 / 7), 0, 0,
    ]  # fmt: skip


def test_every_layer_of_an_encoder_is_looked_at() -> None:
    measured = list(Attention().measure(context(n_layers=3)))

    assert [(one.metric, one.bin) for one in measured] == [
        (metric, layer) for layer in range(3) for metric in ("attention_entropy", "attention_top")
    ]
    assert all(one.value is not None and one.value < math.log(7) + 1e-6 for one in measured)


def test_a_model_that_shows_no_weights_is_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        list(Attention().measure(gru()))
