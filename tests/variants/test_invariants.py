"""What combinations of parts promise together; what each promises alone is tests/test_conformance.

The names come from the tables, so a new part joins these tests by itself. The default run takes
every pair of parts at least once, with one position for each set of seams that positions use;
further combinations are marked slow.
"""

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
POSITIONS = one_for_each_set_of_seams()


def combinations() -> list[Any]:
    """Every pair of parts at least once; the other combinations of most kinds are slow."""
    early = every_pair(POSITIONS, list(registry.norm_placements), FEEDFORWARDS, MASKS)
    every = product(EVERY_POSITION, list(registry.norm_placements), MASKS)
    late = [
        (*names, feedforward, mask)
        for number, (*names, mask) in enumerate(every)
        if (*names, (feedforward := FEEDFORWARDS[number % len(FEEDFORWARDS)]), mask) not in early
    ]
    return [pytest.param(row, id="-".join(row)) for row in early] + [
        pytest.param(row, id="-".join(row), marks=pytest.mark.slow) for row in late
    ]


BACKENDS = [name for name, one in registry.attentions.items() if one.softmax]
each_combination = pytest.mark.parametrize("parts", combinations())


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
    position, norm_placement, feedforward, mask = parts
    if registry.positions[position].causal_only:
        mask = f"causal & ({mask})"
    around = {"position": position, "norm_placement": norm_placement}
    return {**around, "feedforward": feedforward, "mask": mask}


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
    """The tolerance is that of the largest number of each tensor, or of 1 where that is less."""
    assert one.keys() == other.keys()
    for path, expected in other.items():
        largest = max(expected.abs().max().item(), 1.0)
        torch.testing.assert_close(
            one[path] / largest,
            expected / largest,
            rtol=0,
            atol=tolerance,
            msg=lambda said, path=path: f"{path}: {said}",
        )


def test_every_mask_that_a_config_can_name_is_tried_here() -> None:
    tried = {mask.split("(")[0] for mask in MASKS}
    assert tried >= {*registry.masks} - {"dense", "documents", "padding"}


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
def test_backends_agree_forward_and_backward(parts: tuple[str, ...]) -> None:
    tokens = ragged()
    encoders = [build(**chosen(parts), attention=name) for name in BACKENDS]
    hidden = [encoder(tokens).hidden for encoder in encoders]
    grads = [gradients(*pair) for pair in zip(encoders, hidden, strict=True)]
    for other, other_grads in zip(hidden[1:], grads[1:], strict=True):
        torch.testing.assert_close(other, hidden[0], rtol=1e-5, atol=1e-5)
        assert_same(other_grads, grads[0], tolerance=1e-4)
