"""Gradient norms, against torch's own backward pass and by hand."""

import pytest
import torch

from studies.probes.gradient_norms import GradientNorms
from studies.scoring import batch_loss
from tests.messages import Messages
from tests.studies.probes.contexts import context, gru


def test_the_norm_of_each_layer_is_that_of_its_gradients() -> None:
    made = context(n_layers=3)
    measured = {one.bin: one.value for one in GradientNorms(examples=8).measure(made)}

    batch_loss(made.model, made.batch(8), made.device).backward()

    assert list(measured) == [0, 1, 2]
    for layer in measured:
        gradients = [
            one.grad.flatten()
            for name, one in made.model.named_parameters()
            if name.startswith(f"blocks.{layer}.") and one.grad is not None
        ]
        expected = torch.linalg.vector_norm(torch.cat(gradients)).item()
        assert measured[layer] == pytest.approx(expected, rel=1e-5)


def test_parameters_may_be_singled_out_by_name() -> None:
    made = context(n_layers=2)
    name = next(name for name, _ in made.model.named_parameters() if "blocks.1.feedforward" in name)

    [only] = GradientNorms(only=name, examples=8).measure(made)

    batch_loss(made.model, made.batch(8), made.device).backward()
    gradient = dict(made.model.named_parameters())[name].grad
    assert gradient is not None
    assert (only.bin, only.value) == (1, pytest.approx(gradient.norm().item(), rel=1e-5))


def test_no_gradient_is_left_behind() -> None:
    made = context()

    list(GradientNorms().measure(made))

    assert all(one.grad is None for one in made.model.parameters())


def test_a_model_without_layers_has_one_norm() -> None:
    [whole] = GradientNorms(examples=4).measure(gru())

    assert whole.bin is None
    assert whole.value is not None
    assert whole.value > 0


def test_a_name_that_no_parameter_has_is_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        list(GradientNorms(only="nothing").measure(context()))
