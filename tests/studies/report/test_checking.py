"""A report says what the database says, word by word: whatever is changed in a file is named."""

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from studies.report.files import shown_in, write_report, wrong_lines
from studies.report.findings import Findings
from tests.studies.made_up import findings, further, task
from tests.studies.report.test_files import JUDGED, LOSER, WINNER

TOLD = findings(
    task(WINNER, LOSER),
    verdicts=[JUDGED],
    hyperparameters={"training.steps": "10"},
    provenance={"database": "sqlite:///a & b.db"},
)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(TOLD, tmp_path_factory.mktemp("report")).parent


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """The same report, elsewhere, to be forged."""
    return shutil.copytree(written, tmp_path / "report")


def check(folder: Path, fresh: Findings = TOLD) -> list[str]:
    return wrong_lines(folder, (folder / "report.html").read_text(encoding="utf-8"), fresh)


def test_a_report_that_nobody_touched_is_right(folder: Path) -> None:
    assert check(folder) == []


@pytest.mark.parametrize(
    ("name", "was", "forged"),
    [
        ("report.html", "Of 1 hypothesis", "Of 9 hypotheses"),
        ("report.html", "up to length 64", "up to length 640"),
        ("report.html", '">supported<', '">refuted<'),
        ("report.html", ">2 / 2<", ">8 / 8<"),
        ("report.html", "5 confirming runs", "50 confirming runs"),
        ("report.html", "p = .004; 2", "p = .001; 2"),
        ("report.html", "(10 steps on", "(1000 steps on"),
        ("report.html", "<td>10</td>", "<td>1000</td>"),
        ("report.md", "Of 1 hypothesis", "Of 9 hypotheses"),
        ("report.md", "| 0.004 |", "| 0.001 |"),
        ("report.md", "0.94", "0.99"),
        ("scores.csv", "0.93", "0.99"),
        ("verdicts.csv", "supported", "refuted"),
        ("hyperparameters.tex", "training.steps & 10", "training.steps & 1000"),
    ],
)
def test_a_changed_word_or_number_is_named_with_its_file(
    folder: Path, name: str, was: str, forged: str
) -> None:
    file = folder / name
    text = file.read_text(encoding="utf-8")
    assert was in text
    file.write_text(text.replace(was, forged, 1), encoding="utf-8")

    (line,) = check(folder)

    number = text[: text.index(was)].count("\n") + 1
    place = name if name == "report.html" else f"{name}, line {number}"
    assert line.startswith(f"{place}: it says ")


def test_a_line_shows_what_was_changed_and_not_all_of_it(folder: Path) -> None:
    file = folder / "report.md"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("Of 1 hypothesis", "Of 9 hypotheses", 1), encoding="utf-8")
    (line,) = check(folder)
    assert line == (
        "report.md, line 3: it says 'Of 9 hypotheses fixed before the', "
        "the database 'Of 1 hypothesis fixed before the'"
    )


def test_a_number_with_a_key_is_told_once_by_its_key(folder: Path) -> None:
    file = folder / "report.html"
    file.write_text(file.read_text(encoding="utf-8").replace(">0.60<", ">0.90<"), encoding="utf-8")
    assert check(folder) == ["verdict1/effect: the page says 0.90 (0.6), the database 0.60 (0.6)"]


def test_a_file_that_is_gone_is_named(folder: Path) -> None:
    (folder / "scores.csv").unlink()
    assert check(folder) == ["scores.csv: is missing"]


def test_runs_that_came_later_are_seen_in_every_file(folder: Path) -> None:
    more = further("rope", (1.0, 0.99, 0.95), (1.0, 0.97, 0.93), (1.0, 0.9, 0.9))
    later = replace(TOLD, tasks=[task(more, LOSER)])
    wrong = check(folder, later)
    assert any(line.startswith("panel1/rope/skill/64: the page says 0.94") for line in wrong)
    for name in ("report.html: ", "report.md, line ", "scores.csv, line "):
        assert any(line.startswith(name) for line in wrong)


def test_many_lines_of_one_file_are_counted(folder: Path) -> None:
    with (folder / "scores.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    with (folder / "scores.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([rows[0], *([*row[:-2], "0.55", row[-1]] for row in rows[1:])])
    assert check(folder)[-1] == "scores.csv: 40 further lines differ"


def test_the_address_of_the_database_is_read_from_the_page(folder: Path) -> None:
    assert shown_in((folder / "report.html").read_text(encoding="utf-8")) == "sqlite:///a & b.db"
    assert shown_in("<p>nothing</p>") is None
