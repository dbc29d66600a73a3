"""A query that may attend to nothing gets output 0, weights 0 and gradient 0, everywhere."""

from typing import Any

import pytest
import torch
from torch import Tensor

import registry
from registry import build_encoder
from variants.masks import Causal, Dense, Documents, Full, Mask, Padding, Window

SOFTMAX = [name for name, one in registry.attentions.items() if one.softmax]
BATCH, HEADS, N, WIDTH = 2, 2, 4, 8
EMPTY: dict[str, Mask] = {
    "everything is forbidden": ~Full(),
    "left padding and causal": Causal()
    & Padding(keep=torch.tensor([[False, False, True, True], [True] * 4])),
    "a sequence of pads": Padding(lengths=[0, 4]),
    "right padding and window": Window(radius=1) & Padding(lengths=[1, 4]),
    "in one head alone": Dense(
        torch.stack([torch.ones(1, 4, 4), torch.ones(1, 4, 4).tril(-1)], 1) > 0
    ),
    "far within a document": Documents(torch.tensor([[0, 0, 1, 1]])) & ~Window(radius=1),
}


@pytest.mark.parametrize("weighed", [False, True], ids=["without weights", "with weights"])
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("attention", SOFTMAX)
@pytest.mark.parametrize("name", EMPTY)
def test_who_may_attend_to_nothing_gets_nothing(
    name: str, attention: str, dtype: torch.dtype, training: bool, weighed: bool
) -> None:
    sizes = {"d_model": WIDTH, "n_heads": HEADS, "n_layers": 1, "bias": False}
    encoder = build_encoder({**sizes, "attention": attention, "position": "alibi"}, seed=0)
    encoder = encoder.to(dtype).train(training)
    inner: Any = encoder.blocks[0].attention
    mixed: list[Tensor] = []
    inner.to_model.register_forward_pre_hook(lambda _, inputs: mixed.append(inputs[0]))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(BATCH, N, WIDTH, generator=generator).to(dtype).requires_grad_()

    weights = encoder(x, mask=EMPTY[name], need_weights=weighed).weights
    empty = ~EMPTY[name].dense(BATCH, HEADS, N, N).expand(BATCH, HEADS, N, N).any(-1)
    per_head = mixed[0].unflatten(-1, (HEADS, -1)).transpose(1, 2)
    nothing = per_head[empty]

    assert empty.any()
    assert nothing.eq(0).all()
    assert per_head.isfinite().all()
    for gradient in torch.autograd.grad(
        nothing.sum(),
        [x, *inner.parameters()],
        retain_graph=True,
        allow_unused=True,
        materialize_grads=True,
    ):
        assert gradient.eq(0).all()
    for gradient in torch.autograd.grad(per_head.sum(), [x, inner.to_q.weight, inner.to_v.weight]):
        assert gradient.isfinite().all()
    assert (weights is not None) == weighed
    if weights is not None:
        assert weights[0][empty].eq(0).all()
        totals = weights[0].sum(-1)[~empty]
        torch.testing.assert_close(totals, torch.ones_like(totals))
