"""Learned absolute positions."""

from typing import Any

import pytest
import torch

from registry import build_encoder
from tests.messages import Messages
from variants import Dims, Encoder
from variants.positions import Learned
from variants.positions.position import BeyondTableError


def encoder(**options: Any) -> Encoder:
    position = {"name": "learned", "max_length": 8, **options}
    return build_encoder({"d_model": 8, "n_heads": 1, "n_layers": 1, "position": position}, seed=0)


def test_the_longest_length_works_and_the_next_is_refused(messages: Messages) -> None:
    assert encoder()(torch.zeros(1, 8, 8)).hidden.isfinite().all()
    with messages.raises(BeyondTableError):
        encoder()(torch.zeros(1, 9, 8))


def test_an_index_beyond_the_table_is_refused_at_any_length(messages: Messages) -> None:
    index = torch.tensor([[0, 7]])
    assert encoder()(torch.zeros(1, 2, 8), positions=index).hidden.isfinite().all()
    with messages.raises(BeyondTableError):
        encoder()(torch.zeros(1, 2, 8), positions=index + 3)


def test_padding_may_reach_beyond_the_table() -> None:
    position = {"name": "learned", "max_length": 3}
    config = {"vocab_size": 9, "d_model": 8, "n_heads": 1, "pad_id": 0, "position": position}
    small = build_encoder(config, seed=0)
    alone = small(torch.tensor([[4, 5, 6]])).hidden
    for tokens in ([4, 5, 6, 0, 0], [0, 0, 4, 5, 6]):
        hidden = small(torch.tensor([tokens])).hidden[0, torch.tensor(tokens) > 0]
        torch.testing.assert_close(hidden, alone[0])
    with pytest.raises(BeyondTableError, match=r"max_length=3; .* length 4"):
        small(torch.tensor([[4, 5, 6, 7, 0]]))


def table(rows: list[float], beyond: str) -> Learned:
    part = Learned(Dims(2, 1, 2, 1), max_length=len(rows), beyond=beyond)  # pyright: ignore
    with torch.no_grad():
        part.table.weight.copy_(torch.tensor([[row, -row] for row in rows]))
    return part


@pytest.mark.parametrize(
    ("beyond", "fact", "expected"),
    [
        ("clamp", "clamps", [10, 20, 40, 40, 40]),
        ("resample", "resamples", [10, 15, 20, 30, 40]),
    ],
)
def test_a_longer_sequence_takes_the_last_row_or_stretches_the_table(
    beyond: str, fact: str, expected: list[float]
) -> None:
    part = table([10.0, 20.0, 40.0], beyond)
    assert part.beyond == fact
    for length in (1, 2, 3):  # within the table both are the table
        rows = part.embed(torch.arange(length).unsqueeze(0))
        assert rows[0, :, 0].tolist() == [10, 20, 40][:length]
    rows = part.embed(torch.arange(5).unsqueeze(0))[0]
    assert rows.tolist() == [[row, -row] for row in expected]


def test_each_sequence_of_a_batch_is_resampled_by_its_own_length() -> None:
    part = table([10.0, 20.0, 40.0], "resample")
    # A left-padded row of three tokens, a row of five, and two documents of two and three.
    index = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4], [0, 1, 0, 1, 2]])
    assert part.embed(index)[..., 0].tolist() == [
        [10, 10, 10, 20, 40],
        [10, 15, 20, 30, 40],
        [10, 20, 10, 20, 40],
    ]


def test_a_table_of_one_row_is_stretched_to_that_row_everywhere() -> None:
    assert table([7.0], "resample").embed(torch.arange(4).unsqueeze(0))[0, :, 0].eq(7).all()


@pytest.mark.parametrize("beyond", ["clamp", "resample"])
def test_longer_sequences_are_encoded_alike_however_they_are_padded(beyond: str) -> None:
    config = {"vocab_size": 30, "d_model": 8, "n_heads": 1, "pad_id": 0}
    position = {"name": "learned", "max_length": 4, "beyond": beyond}
    small = build_encoder({**config, "position": position}, seed=0)
    row = torch.arange(1, 10)
    alone = small(row.unsqueeze(0)).hidden[0]
    for left, right in ((3, 0), (0, 3)):
        padded = torch.nn.functional.pad(row, (left, right)).unsqueeze(0)
        hidden = small(padded).hidden[0, left : left + 9]
        torch.testing.assert_close(hidden, alone)


def test_each_index_has_its_row() -> None:
    part = Learned(Dims(4, 1, 4, 1), max_length=3)
    index = torch.tensor([[2, 0], [1, 1]])
    assert torch.equal(part.embed(index), part.table.weight[index])


def test_a_table_has_at_least_one_row(messages: Messages) -> None:
    with messages.raises(ValueError):
        Learned(Dims(4, 1, 4, 1), max_length=0)
