"""What is written: the page, and beside it what a paper needs."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from registry.registry import REGISTRIES
from store.errors import StoreError
from studies.analysis import Verdict
from studies.analysis.gather import Tried
from studies.experiment.hypothesis import Hypothesis
from studies.experiment.resolve import cited
from studies.experiment.study import Line
from studies.report.files import write_report
from studies.report.findings import Findings, known
from studies.report.numbers import mismatches, read_numbers
from studies.report.page import html_page, latex_table, markdown_page, methods
from tests.studies.made_up import findings, further, task

CLAIM = Hypothesis("further", "RoPE <b>reaches</b> further.", "rope", "learned", "shift", (32, 64))
JUDGED = Verdict(CLAIM, "supported", 0.6, 0.5, 0.7, 0.002, 0.004, 2, 2, level=0.95, family=1)
WINNER = further("rope", (1.0, 0.99, 0.95), (1.0, 0.97, 0.93))
LOSER = further("learned", (1.0, 0.4, 0.1), (1.0, 0.5, 0.2), "diverged")


@pytest.fixture(scope="session")
def told() -> Findings:
    return findings(task(WINNER, LOSER), verdicts=[JUDGED])


@pytest.fixture(scope="session")
def folder(told: Findings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(told, tmp_path_factory.mktemp("report") / "new").parent


@pytest.mark.parametrize("inside", ["", "new"])
def test_a_folder_that_cannot_be_made_is_refused(
    told: Findings, tmp_path: Path, inside: str
) -> None:
    file = tmp_path / "taken"
    file.write_text("")
    with pytest.raises(StoreError, match=f"^{file / inside} cannot be the folder of a report: "):
        write_report(told, file / inside)


def test_every_file_is_there_and_none_is_half_written(folder: Path) -> None:
    names = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    drawn = {"contrasts", *(f"panel1_{one}" for one in ("lengths", "heat_map", "learning", "cost"))}
    assert names == {
        *("report.html", "report.md", "scores.csv", "verdicts.csv"),
        *("hyperparameters.tex", "references.bib"),
        *(f"figures/{name}.{kind}" for name in drawn for kind in ("png", "pdf")),
    }


def test_the_answer_comes_first(folder: Path) -> None:
    text = (folder / "report.md").read_text(encoding="utf-8").splitlines()
    assert text[0] == "# Which arm reaches further?"
    assert text[2].startswith(
        "Of 1 hypothesis fixed before the confirming runs: 1 supported (further). "
        "On shift, rope stays at 0.8 skill or above up to length 64"
    )


def test_the_text_of_a_claim_cannot_become_markup(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "RoPE &lt;b&gt;reaches&lt;/b&gt; further." in page
    assert "<script" not in page


def test_the_page_made_anew_has_the_same_numbers(folder: Path, told: Findings) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert mismatches(page, html_page(told)[1]) == []
    numbers = read_numbers(page)
    assert numbers["panel1/rope/skill/64"][1] == "0.94"
    assert float(numbers["panel1/rope/skill/64"][0]) == pytest.approx((0.95 + 0.93) / 2)
    # None of its three seeds, one of which diverged, solved length 64.
    assert numbers["panel1/learned/solved/64"][0] == "0.0"
    assert numbers["verdict1/effect"] == ("0.6", "0.60")


def test_the_page_of_other_results_differs(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    worse = further("rope", (1.0, 0.99, 0.95), (1.0, 0.97, 0.5))
    other = findings(task(worse, LOSER), verdicts=[JUDGED])
    lines = mismatches(page, html_page(other)[1])
    assert any(line.startswith("panel1/rope/skill/64: the page says 0.94") for line in lines)


def test_lengths_evaluated_later_have_a_table_of_their_own() -> None:
    added = {("test", "skill", 512): 0.25}
    seeds = {number: replace(seed, later=added) for number, seed in WINNER.seeds.items()}
    told = findings(task(replace(WINNER, seeds=seeds), LOSER))

    html, text = html_page(told)[0], markdown_page(told, {})

    title = "evaluated after the study"
    assert read_numbers(html)["panel1/rope/later/512"] == ("0.25", "0.25")
    rows = text[text.index(title) :].splitlines()[2:6]
    assert [row for row in rows if row] == [
        "| length | 512 |",
        "| --- | ---: |",
        "| rope | 0.25 ± 0.00 |",
        "| learned | n/a |",
    ]
    assert title not in markdown_page(findings(task(WINNER, LOSER)), {})


def test_every_seed_is_in_the_scores_and_every_contrast_in_the_verdicts(folder: Path) -> None:
    with (folder / "scores.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 3 * 4  # seeds, lengths, metrics
    assert {row["arm"] for row in rows} == {"rope", "learned"}
    accuracy = next(row for row in rows if row["metric"] == "accuracy")
    assert accuracy["floor"] == "0.2"
    with (folder / "verdicts.csv").open(encoding="utf-8") as file:
        (verdict,) = csv.DictReader(file)
    assert (verdict["name"], verdict["status"], verdict["effect"]) == (
        "further",
        "supported",
        "0.6",
    )


def test_any_name_stands_in_one_cell_of_markdown_and_in_every_figure(tmp_path: Path) -> None:
    name = r"$\frac{$ a|b <b>"
    folder = write_report(findings(task(replace(WINNER, name=name), LOSER)), tmp_path).parent
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert r"| \$\\frac{\$ a\|b \<b> | 1.00 ± 0.00 | 0.98 ± " in text
    assert r"On shift, \$\\frac{\$ a\|b \<b> stays at 0.8 skill" in text


def test_several_values_of_a_verdict_are_apart_in_one_cell(folder: Path) -> None:
    with (folder / "verdicts.csv").open(encoding="utf-8") as file:
        (verdict,) = csv.DictReader(file)
    assert (verdict["lengths"], verdict["notes"]) == ("32; 64", "")


def test_a_table_for_latex_escapes_what_latex_reads() -> None:
    table = latex_table(findings(task(WINNER), hyperparameters={"d_model": "50 % & $x^2$ {a}"}))
    assert r"d\_model & 50 \% \& \$x\textasciicircum{}2\$ \{a\} \\" in table
    assert table.count(r"\midrule") == 1


def test_the_methods_say_how_many_seeds_and_steps() -> None:
    said = methods(findings(task(WINNER)))
    assert "trained every arm from scratch on shift(k=3) (10 steps on lengths 2 to 16)" in said
    assert "2 seeds an arm" in said
    assert "none was tuned" in said


def test_the_methods_say_nothing_of_what_was_not_done() -> None:
    untrained = methods(findings(task(WINNER, task="", label="float32, causal")))
    assert untrained.startswith("Nothing was trained: we measured every arm on float32, causal.")
    assert "tuned" not in untrained
    assert "permutation" not in untrained

    setting = Tried("learning_rate 0.01", 0.1, chosen=True)
    told = methods(findings(task(replace(WINNER, tuning=[setting])), verdicts=[JUDGED]))
    assert "one was chosen" in told
    assert "The chosen setting was then run on 2 fresh seeds" in told
    assert "studentized two-sample permutation test" in told


def test_what_a_run_found_in_words_stands_on_both_pages() -> None:
    lines = [Line("parity: a | b", "failed", "0.5 < 1"), Line("loss", "not applicable", "no task")]
    told = findings(task(WINNER), lines=lines)
    page, numbers = html_page(told)
    assert '<span class="verdict failed">' in page
    assert "0.5 &lt; 1" in page
    assert numbers.known["finding1"] == ("", "0.5 < 1")
    assert mismatches(page, numbers) == []
    assert r"| parity: a \| b | failed | 0.5 < 1 |" in markdown_page(told, {})


def test_every_paper_that_a_part_or_task_names_has_an_entry() -> None:
    entries = known()
    lacking = {
        (part.__name__, number)
        for table in REGISTRIES.values()
        for part in map(table.__getitem__, table)
        for number in cited(part.__doc__ or "")
        if number not in entries
    }
    assert lacking == set()


def test_entries_are_whole_and_have_keys_of_their_own() -> None:
    keys = [re.match(r"@misc\{(\w+),", entry) for entry in known().values()]
    assert all(keys)
    assert len({key[1] for key in keys if key}) == len(keys)


def test_the_methods_name_the_test_of_each_kind_of_claim() -> None:
    timed = replace(JUDGED, hypothesis=replace(CLAIM, metric="steps_to_fit", lengths=(16,)))
    crossed = replace(JUDGED, hypothesis=replace(CLAIM, than=("rope, post", "learned, post")))
    later = replace(timed, exploratory=True)

    plain, times, interactions, all_later, both = (
        methods(findings(task(WINNER), verdicts=judged))
        for judged in ([JUDGED], [timed], [crossed], [later], [JUDGED, later])
    )

    assert "two-sample permutation test over seeds, with Holm's correction over the family" in plain
    assert "log-rank" not in plain
    assert "tested by a permutation log-rank test where they are about times, with" in times
    assert "tested by permuted residuals of the additive model (Freedman & Lane)" in interactions
    assert "two-sample" not in times + interactions
    assert "none being fixed beforehand (exploratory)" in all_later
    assert "fixed before the" not in all_later
    assert "fixed before the first confirming run and those that came later (exploratory)" in both


def test_effects_and_p_values_have_the_digits_that_tell_them_from_nothing() -> None:
    small = replace(CLAIM, smallest_effect=0.005)
    judged = replace(JUDGED, hypothesis=small, effect=0.0042, low=0.0038, high=0.0046, p_holm=2e-5)

    page, numbers = html_page(findings(task(WINNER), verdicts=[judged]))

    shown = {key.split("/")[1]: text for key, (_, text) in numbers.known.items() if "/" in key}
    shown = {key: shown[key] for key in ("effect", "low", "high", "delta", "p")}
    assert list(shown.values()) == ["0.0042", "0.0038", "0.0046", "0.0050", "2e-05"]
    assert mismatches(page, numbers) == []
