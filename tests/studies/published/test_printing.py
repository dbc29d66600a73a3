"""What is printed of a table beside ours, and a call from end to end."""

import re
import sys
from contextlib import closing
from pathlib import Path

import pytest

from store.aggregate import Interval
from store.results import Results
from studies.cli.named import published_app
from studies.experiment.plan import latest_plan
from studies.published.comparison import (
    MARK,
    Ours,
    Pair,
    around,
    interval_text,
    number,
    paper,
    verdict,
)
from studies.published.table import Cell, load, names


def test_a_number_that_was_not_verified_is_marked() -> None:
    cells = {(one.row, one.column): one for one in load("ruoss_2023").cells()}
    assert paper(cells["even_pairs", "alibi"]) == f"67.3{MARK}"
    read = load("haviv_2022")
    assert not any(paper(one).endswith(MARK) for one in read.cells())


@pytest.mark.parametrize("name", names())
def test_a_number_of_a_source_is_shown_with_all_its_digits(name: str) -> None:
    table = load(name)
    for cell in table.cells():
        shown = paper(cell).removesuffix(MARK).partition(" ")[0]
        assert float(shown) == (cell.lowest if cell.value is None else cell.value)
        if cell.spread is not None:
            assert f"(sd {cell.spread:g})" in paper(cell)


def test_numbers_are_shown_with_what_the_source_prints_beside_them() -> None:
    table = load("peluche_2023")
    shown = {one.column: paper(one) for one in table.cells()}
    assert shown["sinusoidal"] == "0.945 to 1"
    assert shown["none"] == "0.08"
    cell = Cell(row="r", column="c", verified=True, value=0.5, spread=0.25)
    assert paper(cell) == "0.5 (sd 0.25)"
    assert paper(None) == "n/a"
    assert (number(None), number(12345.0), number(1 / 3)) == ("n/a", "12,345", "0.333")


def test_ours_are_shown_with_their_interval() -> None:
    # t(2, .975) = 4.303; sd 1 over √3.
    assert around(Ours([1.0, 2.0, 3.0], 3)) == "2 ± 2.48"
    assert around(Ours([1.0], 2)) == "1"
    assert around(Ours([], 2)) == "n/a"
    assert interval_text(Interval(1.0, 0.5, 1.5, 3)) == "1 ± 0.5"


def test_the_verdict_counts_pairs_by_mean_and_by_maximum() -> None:
    pairs = [
        Pair("r", "a", "b", False, None, "agrees", "agrees"),
        Pair("r", "a", "c", False, None, "cannot tell", "disagrees"),
    ]
    assert verdict(pairs, []) == (
        "Order: of 2 pairs 1 agree, 0 disagree, 1 cannot tell. "
        "By the maximum over seeds: of 2 pairs 1 agree, 1 disagree, 0 cannot tell."
    )
    assert "Nothing" in verdict([], [])


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Call the command; its exit code."""
    monkeypatch.setattr(sys, "argv", ["studies.published", *words])
    with pytest.raises(SystemExit) as end:
        published_app()
    return int(end.value.code or 0)


def test_every_table_is_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch) == 0
    shown = capsys.readouterr().out
    assert f"{MARK} not verified at its source" in shown
    assert "xiong_2020" in shown


def test_a_table_that_is_not_there_names_its_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, "--table", "xiong_2002") == 2
    assert "xiong_2020" in capsys.readouterr().err
    assert typed(monkeypatch, "--budget", "smoke") == 2
    assert "--table NAME" in capsys.readouterr().err
    assert typed(monkeypatch, "--seeds", "3", "--table") == 2
    assert typed(monkeypatch, "--table", "xiong_2020", "--format", "markdwn") == 2
    assert "'table', 'markdown'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_table_runs_from_end_to_end_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--table", "xiong_2020", "--budget", "smoke", "--workers", "1"]
    words += ["--storage", f"sqlite:///{tmp_path / 'mine.db'}"]
    assert typed(monkeypatch, *words) == 0
    first = capsys.readouterr().out
    assert "Claims: of 4 claims" in first
    assert f"-0.5{MARK}" in first
    assert "encoder.d_model: 16 here, 128 there" in first
    assert "6 runs in" in first

    assert typed(monkeypatch, *words, "--format", "markdown") == 0
    again = capsys.readouterr().out
    assert "6 runs in" in again
    numbers = re.findall(r"\| (-?[\d.]+ ± [\d.]+) \|", again)
    assert len(numbers) == 4
    assert all(one in first for one in numbers)

    with closing(Results(f"sqlite:///{tmp_path / 'mine.db'}")) as results:
        assert latest_plan(results, "xiong_2020").protocol.seeds == 2
