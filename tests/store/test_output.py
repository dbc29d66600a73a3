"""Tables fit narrow terminals, and each format reads back as what was stored; no file is lost."""

import csv
import io
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from store import Ledger
from store.__main__ import command_line
from store.output import Table, fit, print_table, write
from store.records import PlannedRun
from tests.messages import Messages

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


MakeRun = Callable[..., PlannedRun]


def call(*words: str) -> Result:
    return CliRunner().invoke(command_line(), list(words))


@pytest.fixture
def filled(ledger: Ledger, make_run: MakeRun, url: str) -> str:
    """Two runs, one with a score that is not finite; the seed of one needs 64 bits."""
    claim = ledger.claim("w", ledger.plan([make_run(2**62, arm="größe 🙂"), make_run(1)]))
    assert claim is not None
    score = {"split": "test", "metric": "accuracy", "n": 4}
    finite = {**score, "length": 8, "correct": 1, "value": 0.1 + 0.2}
    ledger.finish(claim, "done", scores=[finite, {**score, "length": 16, "value": float("nan")}])
    return url


def test_parquet_keeps_types_and_what_lacks(filled: str, tmp_path: Path) -> None:
    target = tmp_path / "scores.parquet"
    assert call("scores", "--storage", filled, "--out", str(target)).exit_code == 0
    table = parquet.read_table(target)
    assert table.column("value").to_pylist() == [0.1 + 0.2, None]
    assert table.column("length").to_pylist() == [8, 16]
    assert table.column("seed").to_pylist() == [2**62] * 2
    assert table.column("arm").to_pylist() == ["größe 🙂"] * 2
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["value"], types["length"], types["arm"]) == ("double", "int64", "string")
    # a column in which every value lacks holds text, as none is known to be otherwise
    assert table.column("bin").to_pylist() == [None, None]


def test_parquet_keeps_instants_and_configs(filled: str, tmp_path: Path) -> None:
    target = tmp_path / "runs.parquet"
    before = datetime.now(UTC)
    assert call("export", "runs", "--storage", filled, "--out", str(target)).exit_code == 0
    table = parquet.read_table(target)
    first, waiting = table.column("finished_at").to_pylist()
    assert first.tzinfo is not None
    assert first <= before
    assert waiting is None
    assert json.loads(table.column("config").to_pylist()[0])["training"]["learning_rate"] == 0.001
    assert table.column("seed").to_pylist() == [2**62, 1]


def test_csv_and_json_give_every_digit(filled: str, tmp_path: Path) -> None:
    for suffix in ("csv", "json"):
        words = ("scores", "--storage", filled, "--out", str(tmp_path / f"scores.{suffix}"))
        assert call(*words).exit_code == 0
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as file:
        told = list(csv.DictReader(file))
    assert float(told[0]["value"]) == 0.1 + 0.2
    assert (told[1]["value"], told[0]["arm"]) == ("", "größe 🙂")
    rows = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert [row["value"] for row in rows] == [0.1 + 0.2, None]
    assert rows[0]["seed"] == 2**62


@pytest.mark.parametrize("value", ["1e400", "-1e400", "x'00ff'"])
def test_what_has_no_form_in_json_is_told(
    messages: Messages, filled: str, tmp_path: Path, value: str
) -> None:
    target = tmp_path / "odd.json"
    query = ["sql", f"select 1 as one, {value} as odd", "--storage", filled]
    result = call(*query, "--out", str(target))
    assert result.exit_code == 2
    messages(result.stderr)
    assert list(tmp_path.glob("*odd*")) == []
    assert call(*query, "--format", "csv").exit_code == 0


@pytest.mark.parametrize("name", ["kept.csv", "kept.json", "kept.md", "kept.parquet", "kept.txt"])
def test_a_file_is_replaced_when_that_is_asked_alone(
    messages: Messages, filled: str, tmp_path: Path, name: str
) -> None:
    target = tmp_path / name
    target.write_text("precious")
    words = ("scores", "--storage", filled, "--out", str(target))

    refused = call(*words)

    assert refused.exit_code == 2
    messages(refused.stderr)
    assert target.read_text() == "precious"
    replaced = call(*words, "--overwrite")
    assert (replaced.exit_code, replaced.stderr) == (0, f"2 rows are in {target}\n")
    assert not target.read_bytes().startswith(b"precious")


@pytest.mark.parametrize(
    "words",
    [
        ["studies"],
        ["schema"],
        ["sql", "select 1"],
        ["runs"],
        ["export", "curves"],
        ["lengths"],
        ["failures"],
    ],
)
def test_no_command_replaces_a_file_unasked(filled: str, tmp_path: Path, words: list[str]) -> None:
    target = tmp_path / "kept.csv"
    target.write_text("precious")
    storage = [] if words == ["schema"] else ["--storage", filled]
    assert call(*words, *storage, "--out", str(target)).exit_code == 2
    assert target.read_text() == "precious"
    assert call(*words, *storage, "--out", str(target), "--overwrite").exit_code == 0
    assert target.read_text() != "precious"


def test_a_link_to_nowhere_is_a_file_that_is_there(filled: str, tmp_path: Path) -> None:
    target = tmp_path / "link.csv"
    target.symlink_to(tmp_path / "nowhere.csv")
    assert call("scores", "--storage", filled, "--out", str(target)).exit_code == 2
    assert target.is_symlink()


@pytest.mark.parametrize(
    "words",
    [
        ["--out", "x.xlsx"],
        ["--out", "x"],
        ["--format", "parquet"],
        ["--out", "none/x.csv"],
    ],
)
def test_a_file_that_cannot_be_written_is_told(
    messages: Messages,
    filled: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("scores", "--storage", filled, *words)
    assert result.exit_code == 2
    messages(result.stderr)
