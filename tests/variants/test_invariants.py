"""What every combination of parts promises: padding, empty rows, dtypes, backends, causality.

The names come from the tables, so a new part joins these tests by itself. The default run takes
every pair of parts at least once, with one position for each set of seams that positions use;
further combinations are marked slow.
"""

from copy import deepcopy
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import registry
from registry import build_encoder
from tests.variants.pairs import every_pair
from variants.encoder import Encoder
from variants.masks import Causal, Dense, Documents, Full, Mask, Padding, Window
from variants.positions import Position

MASKS = ["full", "causal", "window(radius=2)", "prefix(length=2)", "dilated(rate=2)"]
MASKS += [
    "blocks(size=3)",
    "causal & ~window(radius=1)",
    "global_tokens(count=1) | window(radius=1)",
]
MASKS += ["random_blocks(size=2, count=1) | blocks(size=2)"]
FEEDFORWARDS = list(registry.feedforwards)


SEAMS = ("place", "embed", "rotate", "bias", "scores")


def one_for_each_set_of_seams() -> list[str]:
    """Positions that reach the other parts in different ways."""
    first: dict[tuple[bool, ...], str] = {}
    for name, part in registry.positions.items():
        used = tuple(getattr(part, seam) is not getattr(Position, seam) for seam in SEAMS)
        first.setdefault(used, name)
    return sorted(first.values())


EVERY_POSITION = list(registry.positions)
POSITIONS = ("position", one_for_each_set_of_seams())


def combinations() -> list[Any]:
    """Every pair of parts at least once; the other combinations of most kinds are slow."""
    early = every_pair(POSITIONS[1], list(registry.norm_placements), FEEDFORWARDS, MASKS)
    every = product(EVERY_POSITION, list(registry.norm_placements), MASKS)
    late = [
        (*names, feedforward, mask)
        for number, (*names, mask) in enumerate(every)
        if (*names, (feedforward := FEEDFORWARDS[number % len(FEEDFORWARDS)]), mask) not in early
    ]
    return [pytest.param(row, id="-".join(row)) for row in early] + [
        pytest.param(row, id="-".join(row), marks=pytest.mark.slow) for row in late
    ]


def pairs(*axes: Any) -> Any:
    """A mark for tests with these axes, each a pair of a name and its values."""
    rows: list[Any] = every_pair(*(values for _, values in axes))
    if POSITIONS in axes:
        wider = [EVERY_POSITION if name == POSITIONS[0] else values for name, values in axes]
        place = axes.index(POSITIONS)
        others = [row for row in every_pair(*wider) if row[place] not in POSITIONS[1]]
        rows += [pytest.param(*row, marks=pytest.mark.slow) for row in others]
    return pytest.mark.parametrize([name for name, _ in axes], rows, ids=lambda one: str(one))


PLACEMENTS = ("norm_placement", list(registry.norm_placements))
BACKENDS = ("attention", [name for name, one in registry.attentions.items() if one.softmax])
each_combination = pytest.mark.parametrize("parts", combinations())
each_position = pytest.mark.parametrize("position", EVERY_POSITION)
each_placement = pytest.mark.parametrize("norm_placement", list(registry.norm_placements))


def build(**changes: Any) -> Encoder:
    """An encoder in evaluation mode; its weights are shared between tests, which leave them be."""
    return built(tuple(changes.items())).eval()


@cache
def built(changes: tuple[tuple[str, Any], ...]) -> Encoder:
    sizes = {"vocab_size": 12, "d_model": 16, "n_heads": 2, "n_layers": 2, "pad_id": 0}
    encoder = build_encoder({**sizes, **dict(changes)}, seed=3)
    spread(encoder)
    return encoder


def spread(encoder: Encoder) -> None:
    """Move what starts at 0 or 1, such as a bias table, so that a fault in its use would show."""
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for path, parameter in encoder.named_parameters():
            if not path.startswith("embedding"):
                parameter += torch.randn(parameter.shape, generator=generator) / 10


def chosen(parts: tuple[str, ...]) -> dict[str, Any]:
    names = ("position", "norm_placement", "feedforward", "mask")
    return dict(zip(names, parts, strict=True))


def tokens_of(batch: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(1, 12, (batch, length), generator=torch.Generator().manual_seed(seed))


def ragged(length: int = 6) -> Tensor:
    """A full row, a right-padded one, a left-padded one, and one padded on both sides."""
    rows = [tokens_of(1, length)]
    for seed, (left, right) in enumerate(((0, 2), (2, 0), (1, 1)), start=1):
        rows.append(padded(tokens_of(1, length - left - right, seed), left, right))
    return torch.cat(rows)


def padded(row: Tensor, left: int, right: int) -> Tensor:
    return F.pad(row, (left, right), value=0)


def gradients(encoder: Encoder, hidden: Tensor) -> dict[str, Tensor]:
    """The gradients of a loss in which every number of the hidden states has its own weight."""
    generator = torch.Generator().manual_seed(5)
    weight = torch.randn(hidden.shape[1:], generator=generator, dtype=hidden.dtype)
    encoder.zero_grad()
    (hidden * weight).sum().backward()
    return {
        path: parameter.grad.clone()
        for path, parameter in encoder.named_parameters()
        if parameter.grad is not None
    }


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor], tolerance: float) -> None:
    assert one.keys() == other.keys()
    torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_every_mask_that_a_config_can_name_is_tried_here() -> None:
    tried = {mask.split("(")[0] for mask in MASKS}
    assert tried >= {*registry.masks} - {"dense", "documents", "padding"}


@each_combination
def test_weights_sum_to_one_over_the_allowed_keys_and_are_zero_elsewhere(
    parts: tuple[str, ...],
) -> None:
    encoder, tokens = build(**chosen(parts)), ragged()
    allowed = (encoder.mask & Padding.from_tokens(tokens, 0)).dense(4, 2, 6, 6).expand(4, 2, 6, 6)
    weights = encoder(tokens, need_weights=True).weights
    assert weights is not None
    assert [layer.shape for layer in weights] == [(4, 2, 6, 6)] * 2
    for layer in weights:
        assert layer[~allowed].eq(0).all()
        torch.testing.assert_close(layer.sum(-1), allowed.any(-1).float())


@each_combination
def test_a_sample_alone_equals_itself_in_a_padded_batch(parts: tuple[str, ...]) -> None:
    encoder, alone = build(**chosen(parts)), tokens_of(1, 5)
    expected = encoder(alone).hidden
    for left, right in ((0, 1), (0, 11), (1, 0), (4, 0)):
        tokens = padded(alone, left, right)
        hidden = encoder(torch.cat([tokens, tokens_of(2, 5 + left + right, seed=1)])).hidden
        assert hidden.shape == (3, 5 + left + right, 16)
        real = hidden[:1, left : left + 5]
        torch.testing.assert_close(real, expected, rtol=1e-5, atol=1e-5)
        assert hidden[0, :left].eq(0).all()
        assert hidden[0, left + 5 :].eq(0).all()


@each_combination
def test_training_without_dropout_equals_evaluation(parts: tuple[str, ...]) -> None:
    encoder, tokens = build(**chosen(parts)), ragged()
    with torch.no_grad():
        evaluated = encoder(tokens, generator=torch.Generator().manual_seed(1)).hidden
    trained = encoder.train()(tokens, generator=torch.Generator().manual_seed(1)).hidden
    torch.testing.assert_close(trained, evaluated, rtol=1e-5, atol=1e-5)


@each_combination
def test_backends_agree_forward_and_backward(parts: tuple[str, ...]) -> None:
    tokens = ragged()
    encoders = [build(**chosen(parts), attention=name) for name in BACKENDS[1]]
    hidden = [encoder(tokens).hidden for encoder in encoders]
    grads = [gradients(*pair) for pair in zip(encoders, hidden, strict=True)]
    for other, other_grads in zip(hidden[1:], grads[1:], strict=True):
        torch.testing.assert_close(other, hidden[0], rtol=1e-5, atol=1e-5)
        assert_same(other_grads, grads[0], tolerance=1e-4)


EMPTY: dict[str, Mask] = {
    "nothing": ~Full(),
    "left padding and causal": Causal()
    & Padding(keep=torch.tensor([[False, False, True, True], [True] * 4])),
    "a sequence of pads": Padding(keep=torch.tensor([[False] * 4, [True] * 4])),
    "right padding and window": Window(radius=1) & Padding(lengths=[1, 4]),
    "an empty row": Dense(torch.tensor([[1, 1, 0, 0], [0] * 4, [1] * 4, [0, 0, 0, 1]]).bool()),
    "far within a document": Documents(torch.tensor([[0, 0, 1, 1]])) & ~Window(radius=1),
}


@pairs(POSITIONS, PLACEMENTS, BACKENDS, ("mask", list(EMPTY)))
def test_rows_that_may_attend_to_nothing_leave_every_gradient_finite(
    position: str, norm_placement: str, attention: str, mask: str
) -> None:
    encoder = build(position=position, norm_placement=norm_placement, attention=attention)
    empty = EMPTY[mask]
    assert not empty.dense(2, 2, 4, 4).expand(2, 2, 4, 4).any(-1).all()
    out = encoder.train()(tokens_of(2, 4), mask=empty)
    grads = gradients(encoder, out.hidden)
    assert out.hidden.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in grads.values())


@pairs(POSITIONS, BACKENDS)
def test_a_sequence_of_pads_adds_nothing_to_the_gradients_of_the_others(
    position: str, attention: str
) -> None:
    encoder, real = build(position=position, attention=attention, mask="causal"), tokens_of(1, 4)
    with_pads = torch.cat([torch.zeros_like(real), real])
    alone = gradients(encoder, encoder(real).hidden)
    together = gradients(encoder, encoder(with_pads).hidden)
    assert_same(together, alone, tolerance=1e-5)


@pairs(POSITIONS, PLACEMENTS, BACKENDS)
def test_the_result_does_not_depend_on_the_precision(
    position: str, norm_placement: str, attention: str
) -> None:
    parts = {"position": position, "norm_placement": norm_placement, "attention": attention}
    tokens, mask = ragged(), Window(radius=3)
    exact, single, half = (
        deepcopy(build(**parts)).to(dtype)(tokens, mask=mask).hidden
        for dtype in (torch.float64, torch.float32, torch.bfloat16)
    )
    assert [x.dtype for x in (exact, single, half)] == [
        torch.float64,
        torch.float32,
        torch.bfloat16,
    ]
    torch.testing.assert_close(single.double(), exact, rtol=1e-4, atol=1e-5)
    assert (half.double() - exact).norm() / exact.norm() < 3e-2


@pairs(POSITIONS, BACKENDS)
def test_autocast_changes_rounding_alone(position: str, attention: str) -> None:
    encoder, tokens = build(position=position, attention=attention), ragged()
    expected = encoder(tokens, mask=Causal()).hidden
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = encoder(tokens, mask=Causal()).hidden
    assert (hidden.float() - expected).norm() / expected.norm() < 3e-2


CAUSAL = ["causal", "causal & window(radius=2)", "causal & dilated(rate=2)"]


@pairs(POSITIONS, PLACEMENTS, BACKENDS, ("mask", CAUSAL))
class TestCausal:
    def test_later_tokens_change_nothing_before_them(
        self, position: str, norm_placement: str, attention: str, mask: str
    ) -> None:
        encoder = build(
            position=position, norm_placement=norm_placement, attention=attention, mask=mask
        )
        tokens = tokens_of(2, 8)
        expected = encoder(tokens).hidden
        for t in (1, 3, 7):
            changed = torch.cat([tokens[:, :t], 12 - tokens[:, t:]], dim=1)
            hidden = encoder(changed).hidden
            torch.testing.assert_close(hidden[:, :t], expected[:, :t], rtol=0, atol=0)
            assert (hidden[:, t:] - expected[:, t:]).abs().max() > 1e-3

    def test_no_gradient_flows_back_from_the_past_to_the_future(
        self, position: str, norm_placement: str, attention: str, mask: str
    ) -> None:
        encoder = build(
            position=position, norm_placement=norm_placement, attention=attention, mask=mask
        )
        inputs = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(0))
        inputs.requires_grad_()
        encoder(inputs).hidden[:, :4].square().sum().backward()
        assert inputs.grad is not None
        assert inputs.grad[:, 4:].eq(0).all()
        assert inputs.grad[:, :4].abs().amin(dim=-1).gt(0).all()


@each_position
def test_rows_of_a_batch_know_nothing_of_one_another(position: str) -> None:
    encoder, tokens = build(position=position, pad_id=None), tokens_of(4, 4)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(
        encoder(tokens[order]).hidden, encoder(tokens).hidden[order], rtol=0, atol=1e-6
    )


@each_position
def test_order_and_direction_are_seen_exactly_where_declared(position: str) -> None:
    encoder = deepcopy(build(position=position)).double()
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6]])
    part: Any = encoder.positions[0]
    for order, seen in (
        ([3, 0, 5, 1, 4, 2], part.sees_order),
        ([5, 4, 3, 2, 1, 0], part.sees_direction),
    ):
        moved = encoder(tokens[:, order]).hidden
        difference = (moved - encoder(tokens).hidden[:, order]).abs().max()
        assert (difference > 1e-3) if seen else (difference < 1e-12)


@each_position
def test_a_shift_of_all_positions_shows_exactly_where_declared(position: str) -> None:
    encoder, tokens = deepcopy(build(position=position)).double(), tokens_of(1, 6)
    part: Any = encoder.positions[0]
    index, far = torch.arange(6).unsqueeze(0), min(part.longest or 1006, 1006) - 6
    here, there = (encoder(tokens, positions=index + shift).hidden for shift in (0, far))
    difference = (here - there).abs().max()
    assert (difference < 1e-9) if part.distance_only else (difference > 1e-3)


@each_position
def test_a_packed_document_is_encoded_as_it_would_be_alone(position: str) -> None:
    encoder, ids = build(position=position), torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
    tokens = tokens_of(1, 7)
    packed = encoder(tokens, mask=Documents(ids)).hidden
    alone = [encoder(tokens[:, :3]).hidden, encoder(tokens[:, 3:]).hidden]
    torch.testing.assert_close(packed, torch.cat(alone, dim=1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("readout", list(registry.readouts))
def test_every_readout_ignores_padding(readout: str) -> None:
    encoder, alone = build(readout=readout, position="rope"), tokens_of(1, 5)
    expected = encoder(alone).readout
    for left, right in ((0, 3), (3, 0)):
        out = encoder(padded(alone, left, right)).readout
        real = out[:, left : left + 5] if out.ndim == 3 else out
        torch.testing.assert_close(real, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("readout", list(registry.readouts))
def test_a_sequence_of_pads_reads_zero(readout: str) -> None:
    encoder = build(readout=readout)
    out = encoder(torch.cat([torch.zeros(1, 5, dtype=torch.long), tokens_of(1, 5)]))
    assert out.readout[0].eq(0).all()
    assert out.readout[1].ne(0).any()


@pytest.mark.parametrize("bias", [True, False])
@each_placement
def test_gradient_mode_and_bias_do_not_change_the_path(norm_placement: str, bias: bool) -> None:
    encoder, tokens = build(norm_placement=norm_placement, bias=bias), ragged()
    results = []
    for training in (True, False):
        for recorded in (True, False):
            with torch.set_grad_enabled(recorded):
                results.append(encoder.train(training)(tokens).hidden.detach())
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=1e-5, atol=1e-5)
