"""What a stack of layers may do with its weights and its activations: share them, forget them."""

from typing import Any

import pytest
import torch
from torch import Tensor

import registry
from registry import build_encoder
from variants import Encoder
from variants.masks import Padding

SMALL = {"vocab_size": 9, "d_model": 8, "n_heads": 2, "n_layers": 3, "pad_id": 0}


def build(**changes: Any) -> Encoder:
    return build_encoder({**SMALL, **changes}, seed=0)


def tokens() -> Tensor:
    return torch.randint(1, 9, (2, 5), generator=torch.Generator().manual_seed(0))


def test_shared_layers_are_one_layer_used_again() -> None:
    shared, single = build(share_layers=True), build(n_layers=1)
    assert shared.dims.n_layers == 3
    sizes = [sum(one.numel() for one in each.parameters()) for each in (shared, single)]
    assert sizes[0] == sizes[1]
    assert shared.state_dict().keys() == single.state_dict().keys()
    unrolled = build()
    for block in unrolled.blocks:
        block.load_state_dict(shared.blocks[0].state_dict())
    torch.testing.assert_close(shared(tokens()).hidden, unrolled(tokens()).hidden)
    assert len(shared(tokens(), need_weights=True).weights or ()) == 3


def test_layers_share_nothing_unless_that_is_asked_for() -> None:
    blocks = build().blocks
    ids = [{id(one) for one in block.parameters()} for block in blocks]
    assert len(ids) == 3
    assert not ids[0] & ids[1] | ids[1] & ids[2] | ids[0] & ids[2]


def gradients(encoder: Encoder) -> dict[str, Tensor]:
    """Gradients of a training step, with random numbers drawn between forward and backward."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        hidden = encoder.train()(tokens()).hidden
        torch.rand(5)
        weight = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(1))
        encoder.zero_grad()
        (hidden * weight).sum().backward()
    return {path: one.grad for path, one in encoder.named_parameters() if one.grad is not None}


@pytest.mark.parametrize("attention", [*registry.attentions])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_gradient_checkpointing_changes_no_gradient(attention: str, dropout: float) -> None:
    options: dict[str, Any] = {"attention": attention, "dropout": dropout}
    plain = gradients(build(**options))
    saving = gradients(build(**options, gradient_checkpointing=True))
    assert plain.keys() == saving.keys()
    for path, gradient in plain.items():
        assert gradient.isfinite().all()
        assert torch.equal(gradient, saving[path]), path


def test_gradient_checkpointing_keeps_the_gradients_of_a_frozen_table_out_of_the_way() -> None:
    encoder = build(gradient_checkpointing=True)
    assert encoder.embedding is not None
    encoder.embedding.requires_grad_(False)
    gradient = gradients(encoder)["blocks.0.attention.to_q.weight"]
    assert gradient.abs().sum() > 0


def test_gradient_checkpointing_forgets_the_activations_of_a_block() -> None:
    held = {}
    for saving in (False, True):
        sizes: list[int] = []

        def note(tensor: Tensor, sizes: list[int] = sizes) -> Tensor:
            sizes.append(tensor.numel())
            return tensor

        encoder = build(gradient_checkpointing=saving)
        with torch.autograd.graph.saved_tensors_hooks(note, lambda one: one):
            encoder.train()(tokens())
        held[saving] = sum(sizes)
    assert held[True] < held[False] / 3


@pytest.mark.parametrize("saving", [False, True])
def test_weights_can_be_asked_for_and_learned_from(saving: bool) -> None:
    encoder = build(gradient_checkpointing=saving).train()
    weights = encoder(tokens(), mask=Padding(lengths=[3, 5]), need_weights=True).weights
    assert weights is not None
    assert len(weights) == 3
    weights[2].square().sum().backward()
    gradient = encoder.get_parameter("blocks.0.attention.to_q.weight").grad
    assert gradient is not None
    assert gradient.abs().sum() > 0
