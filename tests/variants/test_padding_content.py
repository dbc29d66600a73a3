"""What padding holds reaches no real token, and no gradient."""

import pytest
import torch

from registry import build_encoder
from variants.masks import Padding

MASK = Padding(keep=torch.tensor([[True] * 6, [False, True, True, True, False, False]]))


@pytest.mark.parametrize("attention", ["sdpa", "explicit", "chunked"])
@pytest.mark.parametrize("junk", [float("nan"), float("inf"), 1e30])
def test_padded_vectors_may_hold_anything(attention: str, junk: float) -> None:
    config = {"vocab_size": 16, "d_model": 32, "n_heads": 4, "attention": attention}
    encoder = build_encoder(config, seed=0).eval()
    x = torch.randn(2, 6, 32, generator=torch.Generator().manual_seed(0))
    x[1, [0, 4, 5]] = junk
    x.requires_grad_()

    found = encoder(x, mask=MASK).hidden
    found.square().sum().backward()

    alone = encoder(x[1:2, 1:4].detach()).hidden
    torch.testing.assert_close(found[1:2, 1:4], alone, atol=2e-6, rtol=0)
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert (x.grad[1, [0, 4, 5]] == 0).all()
    assert all(one.grad.isfinite().all() for one in encoder.parameters() if one.grad is not None)


@pytest.mark.parametrize("junk", [-100, 16, 2**40])
def test_padded_ids_need_be_no_rows_of_the_table(junk: int) -> None:
    encoder = build_encoder({"vocab_size": 16, "d_model": 32, "n_heads": 4}, seed=0).eval()
    tokens = torch.arange(12).reshape(2, 6)
    clean = encoder(tokens, mask=MASK).hidden
    tokens[1, [0, 4, 5]] = junk

    assert torch.equal(encoder(tokens, mask=MASK).hidden, clean)
