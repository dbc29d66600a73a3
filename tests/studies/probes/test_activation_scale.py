"""The scale of activations, against the states that a second pass collects."""

import pytest
import torch
from torch import Tensor, nn

from studies.probes.activation_scale import ActivationScale
from tests.messages import Messages
from tests.studies.probes.contexts import context, gru
from variants.encoder import Encoder


class Times(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor, *others: object) -> Tensor:
        return self.factor * x


def test_the_scale_is_the_root_mean_square_after_each_layer() -> None:
    """Layers that multiply by 2 and by 3: the scale of the embedding times 2, then times 6."""
    made = context(n_layers=2, position="none")
    made.model.blocks = nn.ModuleList([Times(2.0), Times(3.0)])
    batch = made.batch(16)
    assert isinstance(made.model, Encoder)
    assert made.model.embedding is not None
    embedded = made.model.embedding(batch.tokens).detach()
    size = (sum(value**2 for value in embedded.flatten().tolist()) / embedded.numel()) ** 0.5

    measured = [(one.bin, one.value) for one in ActivationScale(examples=16).measure(made)]

    assert measured == [
        (0, pytest.approx(2 * size, rel=1e-5)),
        (1, pytest.approx(6 * size, rel=1e-5)),
    ]


def test_a_layer_that_is_used_twice_counts_twice() -> None:
    made = context(n_layers=2, position="none")
    shared = Times(2.0)
    made.model.blocks = nn.ModuleList([shared, shared])

    first, second = (one.value for one in ActivationScale().measure(made))

    assert first is not None
    assert second == pytest.approx(2 * first)


def test_no_hook_is_left_behind() -> None:
    made = context()

    list(ActivationScale().measure(made))

    assert not any(module._forward_hooks for module in made.model.modules())
    assert torch.is_grad_enabled()


def test_a_model_without_blocks_is_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        list(ActivationScale().measure(gru()))
