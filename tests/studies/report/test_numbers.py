"""Numbers that can be checked again."""

import pytest

from studies.report.numbers import Numbers, mismatches, plain, read_numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.98765, "0.99"),
        (0.9999, "0.99"),
        (1.0, "1.00"),
        (1.0001, "1.01"),
        (-0.001, "0.00"),
        (-0.126, "−0.13"),
        (0.0, "0.00"),
        (None, "n/a"),
        (float("nan"), "n/a"),
    ],
)
def test_a_number_is_short_and_never_claims_a_perfect_one(value: float | None, text: str) -> None:
    assert plain(value) == text


def test_a_page_is_read_back_number_by_number() -> None:
    numbers = Numbers()
    page = f"<p>{numbers.show(0.5, 'a')} and {numbers.show(None, 'b')}</p>"
    assert read_numbers(page) == numbers.known == {"a": ("0.5", "0.50"), "b": ("", "n/a")}
    assert mismatches(page, numbers) == []


def test_a_changed_number_is_named_with_both_values() -> None:
    numbers = Numbers()
    page = numbers.show(0.5, "a")
    forged = page.replace("0.50", "0.90")
    assert mismatches(forged, numbers) == ["a: the page says 0.90 (0.5), the database 0.50 (0.5)"]


def test_changed_words_with_numbers_in_them_are_named_too() -> None:
    numbers = Numbers()
    page = numbers.quote("from 0.84 to <0.72> nats", "loss")

    assert page == '<data value="" data-key="loss">from 0.84 to &lt;0.72&gt; nats</data>'
    assert mismatches(page, numbers) == []
    assert mismatches(page.replace("0.84", "0.94"), numbers) == [
        "loss: the page says from 0.94 to <0.72> nats, the database from 0.84 to <0.72> nats"
    ]


def test_numbers_that_one_side_lacks_are_named() -> None:
    told, now = Numbers(), Numbers()
    page = told.show(0.5, "gone")
    now.show(0.5, "new")
    assert mismatches(page, now) == [
        "gone: the page has a number that the database lacks",
        "new: the database has a number that the page lacks",
    ]


def test_a_key_stands_for_one_number() -> None:
    numbers = Numbers()
    numbers.show(0.5, "a")
    with pytest.raises(ValueError, match="two numbers of a page have the key 'a'"):
        numbers.show(0.6, "a")
