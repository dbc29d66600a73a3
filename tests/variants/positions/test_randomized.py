"""Random positions: their law, and that nothing but the law is random."""

from collections import Counter
from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor

import registry
from registry import ConfigError, EncoderConfig, build_encoder
from registry.config import without_defaults
from tests.messages import Messages
from variants import Dims
from variants.masks import Documents
from variants.positions import BeyondTableError, NoPosition, Randomized, RoPE, T5Bias

READY = sorted(name for name in registry.positions if name.startswith("randomized"))
DIMS = Dims(8, 2, 4, 1)


def randomized(max_length: int = 16) -> Randomized:
    return Randomized(DIMS, RoPE(DIMS), max_length)


def drawn(index: Tensor, seed: int = 0, max_length: int = 16) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return randomized(max_length).place(index, generator).tolist()


def test_positions_are_distinct_ascending_and_below_the_bound() -> None:
    for seed in range(50):
        (row,) = drawn(torch.arange(12).unsqueeze(0), seed)
        assert row == sorted(set(row))
        assert len(row) == 12
        assert 0 <= row[0] <= row[-1] < 16


def test_every_set_of_positions_is_equally_likely() -> None:
    """Chi-squared over the 10 sets of 3 among 5; the 99.99 % quantile with 9 degrees is 33.7."""
    generator, part = torch.Generator().manual_seed(0), randomized(5)
    index, runs = torch.arange(3).unsqueeze(0), 3000
    seen = Counter(tuple(part.place(index, generator)[0].tolist()) for _ in range(runs))
    assert set(seen) == set(combinations(range(5), 3))
    assert sum((count - runs / 10) ** 2 / (runs / 10) for count in seen.values()) < 33.7


def test_the_law_of_a_length_is_the_same_in_any_batch() -> None:
    row, alone = torch.arange(4), drawn(torch.arange(4).unsqueeze(0))[0]
    full = torch.arange(9)
    right, left = torch.full((9,), 3), torch.zeros(9, dtype=torch.long)
    right[:4], left[5:] = row, row
    packed = torch.cat([torch.arange(5), row])
    batch = drawn(torch.stack([full, right, left, packed, full]))
    assert batch[0] == batch[4] == drawn(full.unsqueeze(0))[0]
    assert batch[1][:4] == batch[2][5:] == batch[3][5:] == alone
    assert batch[3][:5] == drawn(torch.arange(5).unsqueeze(0))[0]


def test_a_sequence_of_the_whole_range_stands_where_it_always_did() -> None:
    assert drawn(torch.arange(16).unsqueeze(0)) == [list(range(16))]


def test_each_forward_of_a_training_draws_anew_and_a_generator_decides() -> None:
    encoder = build_encoder({"d_model": 8, "n_heads": 2, "position": "randomized_rope"}, seed=0)
    inputs = torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(0))
    assert encoder.draws
    assert not torch.equal(encoder.train()(inputs).hidden, encoder(inputs).hidden)
    one, same, other = (
        encoder(inputs, generator=torch.Generator().manual_seed(seed)).hidden for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(encoder.eval()(inputs).hidden, encoder(inputs).hidden)


@pytest.mark.parametrize("name", READY)
def test_a_sequence_alone_equals_itself_padded_and_packed(name: str) -> None:
    config = {"vocab_size": 12, "d_model": 8, "n_heads": 2, "pad_id": 0, "position": name}
    encoder = build_encoder(config, seed=0).eval()
    tokens = torch.tensor([[4, 5, 6, 7]])
    alone = encoder(tokens).hidden[0]
    for left, right in ((0, 3), (3, 0), (2, 2)):
        row = torch.nn.functional.pad(tokens, (left, right))
        both = torch.cat([row, torch.randint(1, 12, row.shape)])
        torch.testing.assert_close(encoder(both).hidden[0, left : left + 4], alone)
    packed = encoder(
        torch.cat([tokens, tokens + 1], dim=1), mask=Documents(torch.arange(8)[None] // 4)
    )
    torch.testing.assert_close(packed.hidden[0, :4], alone)


@pytest.mark.parametrize("name", [name for name in READY if name != "randomized"])
def test_a_ready_name_is_that_encoding_at_the_drawn_positions(name: str) -> None:
    config = {"d_model": 8, "n_heads": 2, "position": name}
    ready: Any = build_encoder(config, seed=0).eval()
    inner = ready.positions[0].inner
    assert name == f"randomized_{inner.name}"
    options = ready.config.position.inner
    plain = build_encoder({**config, "position": options}, seed=0).eval()
    state = {key.replace(".inner.", "."): value for key, value in ready.state_dict().items()}
    plain.load_state_dict(state)
    inputs = torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(0))
    places = ready.positions[0].place(torch.arange(6)[None], torch.Generator().manual_seed(3))
    torch.testing.assert_close(
        ready(inputs, generator=torch.Generator().manual_seed(3)).hidden,
        plain(inputs, positions=places).hidden,
    )
    assert (plain(inputs).hidden - plain(inputs, positions=places).hidden).abs().max() > 1e-3


def test_a_sequence_longer_than_the_range_is_refused(messages: Messages) -> None:
    with messages.raises(BeyondTableError):
        drawn(torch.arange(17).unsqueeze(0))


def test_the_facts_are_those_of_the_inner_encoding_at_uneven_positions() -> None:
    part = Randomized(DIMS, T5Bias(DIMS))
    assert part.beyond == "raises"
    assert part.sees_order
    assert part.sees_direction
    assert not part.distance_only
    assert not Randomized(DIMS, NoPosition(DIMS)).sees_order
    assert Randomized(DIMS, T5Bias(DIMS, bidirectional=False)).causal_only


@pytest.mark.parametrize(
    "position",
    [
        {"name": "randomized", "max_length": 0},
        {"name": "randomized", "inner": "learned"},
        {"name": "randomized_learned", "max_length": 4096},
        {"name": "randomized_rope", "inner": "alibi"},
        {"name": "randomized", "inner": "random_offset"},
        {"name": "randomized_rope", "theta": 2.0},
    ],
)
def test_what_does_not_fit_is_refused(messages: Messages, position: dict[str, Any]) -> None:
    with messages.raises(ConfigError):
        build_encoder({"d_model": 8, "n_heads": 2, "position": position})


@pytest.mark.usefixtures("unchecked")
def test_a_name_is_no_built_encoding(messages: Messages) -> None:
    with messages.raises(TypeError):
        Randomized(DIMS)


def test_what_a_ready_name_holds_by_default_is_no_part_of_a_runs_identity() -> None:
    def said(position: Any) -> dict[str, Any]:
        return without_defaults(EncoderConfig(position=position))

    for name in READY:
        inner = EncoderConfig(position=name).position.options()["inner"]
        spelled = {"name": name, "inner": {"name": inner.name, **inner.options()}}
        assert said(name) == said(spelled) == {"position": {"name": name}}
    wider = said({"name": "randomized_rope", "inner": {"name": "rope", "theta": 500.0}})
    assert wider["position"]["inner"] == {"name": "rope", "theta": 500.0}
    assert said({"name": "randomized_learned", "inner": "learned", "max_length": 512}) == {
        "position": {"name": "randomized_learned", "inner": {"name": "learned"}, "max_length": 512}
    }
