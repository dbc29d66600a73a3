"""Which links are chosen, on rows that can be checked by eye."""

from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from studies.links.choices import BY_NUMBER, Choice, Rows, choose

SEE_ALL = "11111111"


def bits(text: str) -> Tensor:
    return torch.tensor([[one == "1" for one in text]])


def row(weights: list[float], true: str, allowed: str = SEE_ALL, count: int = 1) -> Rows:
    return Rows(
        torch.tensor([weights], dtype=torch.float64), bits(allowed), bits(true),
        torch.tensor([count]),
    )  # fmt: skip


def chosen(choice: Choice, rows: Rows, seed: int = 0) -> str:
    keys = choose(choice, rows, torch.Generator().manual_seed(seed))
    return "".join("1" if one else "0" for one in keys[0].tolist())


#                      weights                               needed
SEEN = row([0.05, 0.4, 0.05, 0.3, 0.05, 0.05, 0.05, 0.05], "00010000")


def test_nothing_true_and_top_are_what_they_say() -> None:
    assert chosen("nothing", SEEN) == "00000000"
    assert chosen("true", SEEN) == "00010000"
    assert chosen("top", SEEN) == "01000000"
    assert chosen("keep_true", SEEN) == "11101111"
    assert chosen("keep_top", SEEN) == "10111111"


def test_the_number_counts_links_from_the_largest_down() -> None:
    rows = row([0.1, 0.4, 0.05, 0.3, 0.15, 0, 0, 0], "00010000", count=3)
    assert chosen("top", rows) == "01011000"


def test_a_key_that_the_mask_hides_is_never_taken() -> None:
    hidden = row([0.05, 0.4, 0.05, 0.3, 0.05, 0.05, 0.05, 0.05], "00010000", "11110000", 8)
    assert chosen("top", hidden) == "11110000"
    assert chosen("keep_true", hidden) == "11100000"


def test_random_links_come_in_the_same_number_and_differ_between_draws() -> None:
    rows = row([0.125] * 8, "00010000", count=2)
    drawn = {chosen("random", rows, seed) for seed in range(20)}
    assert {one.count("1") for one in drawn} == {2}
    assert len(drawn) > 5


def test_a_mass_is_matched_by_the_number_that_comes_closest() -> None:
    """The top holds 0.32; the six others hold 0.1 each: three come closest."""
    rows = row([0.32, 0.08, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], "01000000")
    for seed in range(5):
        keys = choose("mass", rows, torch.Generator().manual_seed(seed))
        assert keys.sum() == 3
        assert rows.mass(keys).item() == pytest.approx(0.3)


def test_a_mass_that_cannot_be_matched_takes_all_others() -> None:
    rows = row([0.01, 0.93, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01], "01000000")
    assert chosen("mass", rows) == "10111111"
    keys = choose("mass", rows, torch.Generator().manual_seed(0))
    assert rows.mass(keys).item() == pytest.approx(0.07)


def test_where_there_are_no_others_nothing_is_taken() -> None:
    rows = row([0.5, 0.5, 0, 0, 0, 0, 0, 0], "01000000", "11000000")
    assert chosen("mass", rows) == "00000000"
    assert chosen("random", rows) == "00000000"
    assert chosen("keep_random", rows) == "11000000"


@st.composite
def rows_of_any_kind(draw: st.DrawFn) -> Rows:
    seed, keys = draw(st.integers(0, 10_000)), draw(st.integers(2, 9))
    generator = torch.Generator().manual_seed(seed)
    allowed = torch.rand(4, keys, generator=generator) < 0.8
    true = torch.rand(4, keys, generator=generator) < 0.3
    weights = torch.rand(4, keys, generator=generator, dtype=torch.float64) * allowed
    return Rows(
        weights / weights.sum(-1, keepdim=True).clamp_min(1e-9), allowed, true,
        torch.randint(1, keys + 1, (4,), generator=generator),
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(rows_of_any_kind(), st.integers(0, 100))
def test_a_random_choice_holds_no_true_and_no_top_link(rows: Rows, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    as_many = Rows(rows.weights, rows.allowed, rows.true, rows.true.sum(-1))
    top = choose("top", as_many, generator)
    controls: list[Choice] = ["random", "mass"]
    for choice in controls:
        keys = choose(choice, rows, generator)
        assert not (keys & (rows.true | top | ~rows.allowed)).any(), choice
    others = rows.allowed & ~rows.true & ~top
    number = torch.minimum(rows.count, others.sum(-1))
    assert torch.equal(choose("random", rows, generator).sum(-1), number)


@settings(max_examples=30, deadline=None)
@given(rows_of_any_kind(), st.integers(0, 100))
def test_keeping_is_cutting_all_the_rest(rows: Rows, seed: int) -> None:
    pairs: list[tuple[Choice, Choice]] = [
        ("true", "keep_true"), ("top", "keep_top"), ("random", "keep_random"),
    ]  # fmt: skip
    for pair in pairs:
        cut, kept = (choose(one, rows, torch.Generator().manual_seed(seed)) for one in pair)
        assert torch.equal(cut & rows.allowed, rows.allowed & ~kept)


def test_doses_are_those_choices_that_a_number_changes() -> None:
    few, many = (row([0.2, 0.15, 0.15, *[0.1] * 5], "00010000", count=n) for n in (1, 4))
    changed = {one for one in get_args(Choice) if chosen(one, few) != chosen(one, many)}
    assert changed == set(BY_NUMBER)
