"""A table on a narrow terminal: long texts are shortened, then columns are left out and named."""

import io
import sys
from typing import Any

import pytest

from store.output import Table, fit, print_table, write

ROWS: list[dict[str, Any]] = [
    {"id": 1, "arm": "rope", "reason": "x" * 50, "value": 0.125, "steps": 10},
    {"id": 22, "arm": "größe 🙂", "reason": None, "value": None, "steps": 2000},
]
COLUMNS = list(ROWS[0])


def printed(width: int) -> tuple[list[str], list[str]]:
    rows, shown, left_out = fit(ROWS, COLUMNS, width)
    to = io.StringIO()
    print_table(rows, shown, to)
    return to.getvalue().splitlines(), left_out


@pytest.mark.parametrize("width", [83, 200])
def test_a_table_that_fits_is_left_alone(width: int) -> None:
    rows, shown, left_out = fit(ROWS, COLUMNS, width)
    assert (rows, shown, left_out) == (ROWS, COLUMNS, [])


def test_the_longest_text_is_shortened_first() -> None:
    lines, left_out = printed(60)
    assert left_out == []
    assert max(map(len, lines)) == 60
    assert "x" * 20 in lines[2]
    assert "…" in lines[2]
    assert lines[3].startswith("22  größe 🙂")


def test_columns_are_left_out_from_the_right() -> None:
    lines, left_out = printed(30)
    assert left_out == ["value", "steps"]
    assert lines[0].split() == ["id", "arm", "reason"]
    assert max(map(len, lines)) <= 30


@pytest.mark.parametrize("width", range(1, 90))
def test_no_line_is_wider_than_the_terminal_but_of_one_column(width: int) -> None:
    lines, left_out = printed(width)
    assert max(map(len, lines)) <= width or len(left_out) == len(COLUMNS) - 1


def test_what_does_not_fit_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write(Table(COLUMNS, lambda: ROWS), "table", None)
    assert capsys.readouterr().err == (
        "columns hidden (terminal too narrow): value, steps; use --columns or --format csv\n"
    )


def test_a_mapping_gives_way_before_what_stands_right_of_it() -> None:
    rows = [{"arm": "rope", "config": {"rate": 0.001}, "tried": 4, "edge": "lowest rate"}]
    _, shown, left_out = fit(rows, list(rows[0]), 30)
    assert (shown, left_out) == (["arm", "tried", "edge"], ["config"])
