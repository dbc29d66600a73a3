"""Cut links, against weights that are worked out by hand."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from registry import build_encoder
from studies.links.cutting import CutAttention, Place, check_cuttable, run_cut
from tests.messages import Messages
from variants.attentions import Explicit
from variants.dims import Dims
from variants.encoder import Encoder
from variants.masks import Causal, Dense, Full
from variants.masks.mask import Sizes
from variants.positions import NoPosition

PLACES: list[Place] = ["before", "after", "after_renormalized"]
SIZES: dict[str, Any] = {"vocab_size": 9, "n_classes": 3, "d_model": 8, "n_heads": 2, "n_layers": 2}
TOKENS = torch.tensor([[1, 4, 2, 7, 5], [3, 3, 8, 1, 2]])


def attended(
    parts: list[float], cut: list[bool], place: Place, mask: Any = None
) -> tuple[list[float], float]:
    """One query whose weights are these eighths, over keys with the values 1, 10, 100."""
    dims = Dims(d_model=1, n_heads=1, d_head=1, n_layers=1)
    whole, index = Explicit(dims), torch.arange(len(parts))[None]
    sizes = Sizes(1, 1, len(parts), len(parts))
    prepared = whole.prepare(
        Full() if mask is None else mask, NoPosition(dims), index, index, sizes
    )
    shape = (1, 1, len(parts), 1)
    q, k = torch.ones(shape), torch.tensor(parts).log().reshape(shape)
    v = torch.tensor([10.0**one for one in range(len(parts))]).reshape(shape)
    cuts = [torch.tensor(cut).expand(1, 1, len(parts), -1)]
    mixed, weights = CutAttention(whole, cuts, place).with_weights(q, k, v, prepared)
    return weights[0, 0, -1].tolist(), mixed[0, 0, -1, 0].item()


def test_a_score_that_is_cut_leaves_its_share_to_the_others() -> None:
    weights, mixed = attended([1, 2, 5], [False, False, True], "before")
    assert weights == pytest.approx([1 / 3, 2 / 3, 0])
    assert mixed == pytest.approx(7)


def test_a_weight_that_is_cut_is_lost() -> None:
    weights, mixed = attended([1, 2, 5], [False, False, True], "after")
    assert weights == pytest.approx([1 / 8, 2 / 8, 0])
    assert mixed == pytest.approx(21 / 8)


def test_what_is_left_can_be_scaled_to_one() -> None:
    weights, mixed = attended([1, 2, 5], [True, False, False], "after_renormalized")
    assert weights == pytest.approx([0, 2 / 7, 5 / 7])
    assert mixed == pytest.approx(520 / 7)


@pytest.mark.parametrize("place", PLACES)
def test_a_query_that_loses_every_key_gets_nothing(place: Place) -> None:
    assert attended([1, 2, 5], [True, True, True], place) == ([0, 0, 0], 0)


@pytest.mark.parametrize("place", PLACES)
def test_a_cut_gives_back_nothing_that_the_mask_took(place: Place) -> None:
    only_first = Dense(torch.tensor([[True, False, False]] * 3))
    weights, _ = attended([1, 2, 5], [False, True, False], place, only_first)
    assert weights == pytest.approx([1, 0, 0])


def encoder(**more: Any) -> Encoder:
    return build_encoder({**SIZES, "position": "rope", **more}, seed=1).eval()


def links(*where: tuple[int, int]) -> Tensor:
    """Links from these queries to these keys, of every sequence and head."""
    cut = torch.zeros(1, 1, 5, 5, dtype=torch.bool)
    for query, key in where:
        cut[0, 0, query, key] = True
    return cut


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_cutting_everywhere_before_the_softmax_is_a_mask(mask: str) -> None:
    model, cut = encoder(mask=mask), links((3, 1), (3, 2), (4, 0))

    masked = model(TOKENS, mask=Dense(~cut[0]))
    found = run_cut(model, TOKENS, [cut, cut])

    torch.testing.assert_close(found.hidden, masked.hidden)
    torch.testing.assert_close(found.logits, masked.logits)


def test_scaling_to_one_after_the_softmax_is_the_same_as_before_it() -> None:
    model, cuts = encoder().double(), [links((3, 1), (2, 2)), links((3, 0))]
    before, after = (run_cut(model, TOKENS, cuts, place) for place in PLACES[::2])
    torch.testing.assert_close(before.hidden, after.hidden, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("place", PLACES)
def test_a_cut_in_the_last_layer_changes_its_own_query_alone(place: Place) -> None:
    model = encoder()
    whole, cut = model(TOKENS).hidden, run_cut(model, TOKENS, [None, links((3, 1))], place).hidden
    others = torch.tensor([0, 1, 2, 4])
    torch.testing.assert_close(cut[:, others], whole[:, others])
    assert (cut[:, 3] - whole[:, 3]).abs().max() > 1e-3


def test_layers_and_heads_are_told_apart() -> None:
    model = encoder()
    first = torch.cat([links((3, 1)), links()], dim=1)
    whole = model(TOKENS, need_weights=True).weights
    shown = run_cut(model, TOKENS, [None, first], "after").weights
    assert whole is not None
    assert shown is not None
    torch.testing.assert_close(shown[0], whole[0])
    torch.testing.assert_close(shown[1][:, 1], whole[1][:, 1])
    assert (shown[1][:, 0, 3, 1] == 0).all()
    torch.testing.assert_close(shown[1].sum(dim=(1, 2, 3)), 10 - whole[1][:, 0, 3, 1])


def test_layers_that_share_weights_are_told_apart_too() -> None:
    model = encoder(share_layers=True)
    shown = run_cut(model, TOKENS, [None, links((3, 1))]).weights
    assert shown is not None
    assert (shown[0][:, :, 3, 1] > 0).all()
    assert (shown[1][:, :, 3, 1] == 0).all()


def test_an_encoder_is_left_as_it_was() -> None:
    model, cut = encoder(), links((3, 1))
    reference, before = model.reference, model(TOKENS, need_weights=True)
    run_cut(model, TOKENS, [cut, cut])
    with pytest.raises(ValueError, match="embedded"):
        run_cut(model, torch.zeros(1, 5, 3), [cut, cut])
    after = model(TOKENS, need_weights=True)
    assert model.reference is reference
    assert torch.equal(before.hidden, after.hidden)


def test_no_cut_is_the_encoder_itself() -> None:
    model = encoder()
    assert torch.equal(
        run_cut(model, TOKENS, [None, None]).hidden, model(TOKENS, need_weights=True).hidden
    )


def test_a_cut_that_does_not_fit_is_refused(messages: Messages) -> None:
    with messages.raises(ValueError):
        run_cut(encoder(), TOKENS, [None])
    with messages.raises(ValueError):
        check_cuttable(SimpleNamespace())


def test_a_causal_query_keeps_what_it_may_see() -> None:
    weights, _ = attended([1, 2, 5], [False, True, False], "before", Causal())
    assert weights == pytest.approx([1 / 6, 0, 5 / 6])
    assert not math.isnan(sum(weights))
