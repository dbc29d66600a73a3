"""Rotary positions with a decay."""

import torch

from tests.messages import Messages
from variants import Dims
from variants.positions import RoPE, XPos

D = 8
PAIR = torch.arange(D // 2).double()
ZETA = (2 * PAIR + 0.4 * D) / (1.4 * D)


def dims() -> Dims:
    return Dims(d_model=D, n_heads=1, d_head=D, n_layers=1)


def rows(*index: int) -> torch.Tensor:
    return torch.tensor([index])


def test_a_pair_of_a_score_fades_by_its_factor_for_each_step_back() -> None:
    q, k = torch.randn(2, 1, 1, 1, D, generator=torch.Generator().manual_seed(0)).double()
    for i, j in ((0, 0), (700, 100), (5000, 4500)):
        xq, xk = XPos(dims()).rotate(q, k, rows(i), rows(j))
        rq, rk = RoPE(dims()).rotate(q, k, rows(i), rows(j))
        faded = (xq * xk).reshape(D // 2, 2).sum(-1)
        expected = (rq * rk).reshape(D // 2, 2).sum(-1) * ZETA ** ((i - j) / 512)
        torch.testing.assert_close(faded, expected, rtol=1e-9, atol=1e-12)


def test_keys_after_the_query_grow_instead() -> None:
    ones = torch.ones(1, 1, 1, D).double()
    norms = [
        (x * y).reshape(D // 2, 2).norm()
        for x, y in (XPos(dims()).rotate(ones, ones, rows(i), rows(1000)) for i in (0, 1000, 2000))
    ]
    assert XPos.causal_only
    assert norms[0] > norms[1] > norms[2]


def test_only_differences_count_also_far_out_and_between_lengths() -> None:
    q = torch.randn(1, 1, 5, D, generator=torch.Generator().manual_seed(0))

    def scores(index: torch.Tensor) -> torch.Tensor:
        x, y = XPos(dims()).rotate(q, q, index, index)
        return x @ y.mT

    here = scores(rows(0, 1, 2, 3, 400))
    assert (here - scores(rows(0, 1, 2, 3, 500))).abs().max() > 1e-3
    torch.testing.assert_close(
        here, scores(rows(90_000, 90_001, 90_002, 90_003, 90_400)), rtol=1e-4, atol=1e-4
    )
    assert scores(rows(0, 1, 2, 3, 30_000)).isfinite().all()


def test_odd_heads_and_bases_below_zero_are_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        XPos(Dims(7, 1, 7, 1))
    with messages.raises(ValueError):
        XPos(dims(), scale_base=0.0)
