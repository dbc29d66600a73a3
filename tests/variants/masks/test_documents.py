"""Packed documents: each is masked, placed and encoded as it would be alone, under every mask."""

import pytest
import torch

from registry import build_encoder
from registry.registry import registry_of
from variants.masks import (
    Blocks,
    Causal,
    Dilated,
    Documents,
    Full,
    GlobalTokens,
    Mask,
    Padding,
    Prefix,
    RandomBlocks,
    Window,
)

IDS = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1]])
MASKS = [
    Full(),
    Causal() | Prefix(2),
    ~Prefix(1),
    Blocks(2),
    Blocks(2, radius=1) & Causal(),
    Window(radius=1) | GlobalTokens(2),
    RandomBlocks(2, count=1) | Blocks(2),
    RandomBlocks(1, count=2, seed=3),
    Dilated(2) | Prefix(1),
]


def test_a_prefix_is_that_of_each_document() -> None:
    assert ((Causal() | Prefix(2)) & Documents(IDS)).draw(8).splitlines() == [
        "##......",
        "##......",
        "###.....",
        "...##...",
        "...##...",
        "...###..",
        "...####.",
        "...#####",
    ]


def test_the_documents_of_a_row_have_texts_of_their_own_behind_padding() -> None:
    keep = torch.tensor([[False, True, True, False, False, True, True, True]])
    mask = Prefix(1) & Documents(IDS) & Padding(keep=keep)

    assert mask.draw(8).splitlines() == [".#......"] * 3 + [".....#.."] * 5
    assert mask.positions(1, 8).tolist() == [[0, 0, 1, 0, 0, 0, 1, 2]]


def test_a_document_of_padding_alone_counts_from_its_start() -> None:
    keep = torch.tensor([[False] * 3 + [True] * 5])
    mask = Prefix(1) & Documents(IDS) & Padding(keep=keep)

    assert mask.positions(1, 8).tolist() == [[0, 1, 2, 0, 1, 2, 3, 4]]
    assert mask.draw(8).splitlines() == ["........"] * 3 + ["...#...."] * 5


@pytest.mark.parametrize("mask", MASKS, ids=repr)
@pytest.mark.parametrize("position", ["none", "sinusoidal", "rope", "alibi", "t5_bias"])
def test_a_packed_document_is_encoded_as_it_would_be_alone(mask: Mask, position: str) -> None:
    config = {"vocab_size": 16, "d_model": 16, "n_heads": 2, "position": position}
    encoder = build_encoder(config, seed=0).eval()
    tokens = torch.randint(16, (1, 8), generator=torch.Generator().manual_seed(0))

    packed = encoder(tokens, mask=mask & Documents(IDS)).hidden

    for part in (slice(3), slice(3, 8)):
        alone = encoder(tokens[:, part], mask=mask).hidden
        torch.testing.assert_close(packed[:, part], alone, atol=2e-6, rtol=0)


def test_every_registered_mask_that_counts_is_tried() -> None:
    counting = {name for name, mask in registry_of("mask").items() if mask.counts_real_tokens}
    tried = {atom.name for mask in MASKS for atom in mask.atoms() if atom.counts_real_tokens}
    assert tried == counting
