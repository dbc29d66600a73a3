"""One page over several studies, from result sets whose verdicts are known."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from registry.errors import ConfigError
from store import Ledger
from store.errors import StoreError
from studies import attention_numerics
from studies.analysis import Verdict
from studies.execution.scheduler import Scheduler
from studies.execution.trials import Trials
from studies.experiment.hypothesis import Hypothesis
from studies.experiment.load import Typed, load_draft
from studies.experiment.resolve import resolve
from studies.report import overview
from studies.report.figures import effects
from studies.report.findings import Findings
from studies.report.overview import Entry, entries, write_overview
from tests.studies.made_up import findings, further, task

CLAIM = Hypothesis("reach", "RoPE reaches further.", "rope", "learned", "shift", (32, 64))
STEPS = replace(CLAIM, name="speed", claim="RoPE is faster.", smallest_effect=20.0)
SUPPORTED = Verdict(CLAIM, "supported", 0.6, 0.5, 0.7, 0.002, 0.004, 2, 2)
REFUTED = Verdict(STEPS, "refuted", 10.0, 5.0, 15.0, 0.8, 0.9, 2, 2, notes=("One seed diverged.",))
OPEN = Verdict(replace(CLAIM, name="open"), "inconclusive", 0.1, -0.2, 0.4, 0.3, 0.3, 2, 2)
LATER = replace(SUPPORTED, hypothesis=replace(CLAIM, name="later"), exploratory=True)
UNTESTED = Verdict(replace(CLAIM, name="idle"), "not tested", reason="rope did not learn")
ARMS = [further("rope", (1.0, 0.9, 0.9)), further("learned", (1.0, 0.5, 0.1))]


def told(*verdicts: Verdict, study: str = "lengths") -> Findings:
    return findings(task(*ARMS), verdicts=list(verdicts), study=study)


def page_of(folder: Path, *found: Entry) -> str:
    file = write_overview(found, folder / "found.md", "make it", [("lengths", "x"), ("more", "y?")])
    return file.read_text(encoding="utf-8")


def test_every_verdict_is_a_sentence_with_its_claim_and_stands_where_it_belongs(
    tmp_path: Path,
) -> None:
    page = page_of(tmp_path, Entry(told(SUPPORTED, REFUTED, OPEN, LATER, UNTESTED), "quick", 2))
    primary, _, explored = page.partition("Exploratory, for the next study to confirm:")
    for name, start in (
        ("reach", "RoPE reaches further. *Supported on shift: "),
        ("speed", "RoPE is faster. *Refuted on shift: "),
        ("open", "RoPE reaches further. *Inconclusive on shift: it is open whether "),
        ("idle", "RoPE reaches further. *Not tested on shift: rope did not learn"),
    ):
        assert f"- **{name}.** {start}" in primary
    assert "*Supported on shift (exploratory): " in explored
    assert "One seed diverged." in primary


def test_exploratory_claims_without_a_verdict_are_counted_alone(tmp_path: Path) -> None:
    page = page_of(tmp_path, Entry(told(replace(UNTESTED, exploratory=True), LATER), "quick", 2))
    assert "1 exploratory claim has no verdict yet." in page
    assert "idle" not in page


def test_the_table_counts_primary_claims_alone(tmp_path: Path) -> None:
    entry = Entry(told(SUPPORTED, LATER, OPEN), "quick", 2)
    assert entry.tally == [1, 0, 1, 0]
    row = "| [Which arm reaches further?](#lengths) | 2 | 1 |  | 1 |  |"
    assert row in page_of(tmp_path, entry).splitlines()


def test_a_page_says_what_is_missing_and_what_means_nothing(tmp_path: Path) -> None:
    assert "Unfinished: 2 of 5 runs are done" in page_of(tmp_path, Entry(told(), "quick", 5))
    smoke = page_of(tmp_path, Entry(told(), "smoke", 2))
    assert "its numbers mean nothing" in smoke
    assert "Unfinished" not in smoke
    assert "This study makes no claim, so none is tested." in smoke


def test_a_page_tells_claims_that_came_late_from_none(tmp_path: Path) -> None:
    page = page_of(tmp_path, Entry(told(LATER), "quick", 2))
    assert "No verdict follows a plan that was fixed before the confirming runs" in page
    assert "makes no claim" not in page


def test_a_study_without_results_waits_at_the_end(tmp_path: Path) -> None:
    page = page_of(tmp_path, Entry(told(OPEN), "quick", 2))
    assert page.partition("## Not answered yet")[2].split() == [
        "-",
        "`python",
        "-m",
        "studies.more`:",
        "y?",
    ]


def test_the_figure_lies_beside_the_page_and_is_small(tmp_path: Path) -> None:
    page = page_of(tmp_path, Entry(told(SUPPORTED, OPEN), "quick", 2))
    [picture] = (tmp_path / "found").iterdir()
    assert f"](found/{picture.name})" in page
    assert picture.stat().st_size < 60_000


def test_effects_are_drawn_in_units_of_what_matters() -> None:
    figure = effects([SUPPORTED, REFUTED, UNTESTED])
    assert figure is not None
    lines: list[Any] = list(figure.axes[0].lines)
    dots = [line.get_xdata()[0] for line in lines if line.get_marker() == "o"]
    assert dots == pytest.approx([0.6 / 0.1, 10 / 20])
    assert effects([UNTESTED]) is None


def test_without_an_effect_the_first_figure_of_the_report_is_shown(tmp_path: Path) -> None:
    page = page_of(tmp_path, Entry(told(UNTESTED), "quick", 2))
    assert "![The first figure of the report](found/lengths.png)" in page


def test_a_single_run_compares_nothing_and_tells_what_it_measured(tmp_path: Path) -> None:
    given = further("given", (1.0, 0.5, 0.25))
    lone = task(given, lengths=[64], titles={"skill": "how far"})
    entry = Entry(findings(lone, verdicts=[], study="lengths"), "quick", 1)
    page = page_of(tmp_path, entry)
    assert "| how far | 0.25 |" in page
    assert "![" not in page


def test_the_command_leaves_out_where_it_was_stored() -> None:
    typed = "python -m studies.lengths --storage sqlite:///a.db --seeds=3 --workers=2 --arms 'a, b'"
    entry = Entry(replace(told(), command=typed), "quick", 2)
    assert entry.command == "python -m studies.lengths --seeds=3 --arms 'a, b'"


def a_database(file: Path) -> str:
    url = f"sqlite:///{file}"
    with closing(Ledger.create(url)) as ledger:
        plan = resolve(load_draft(attention_numerics.STUDY, Typed("smoke")))
        scheduler = Scheduler(plan, ledger, Trials(url))
        scheduler.advance()
        claim = ledger.claim("reader", scheduler.ids())
        assert claim is not None
        ledger.finish(claim, "done")
    return url


def test_the_studies_of_a_database_are_found_with_what_is_missing(tmp_path: Path) -> None:
    url = a_database(tmp_path / "one.db")
    [entry] = entries([url])
    assert entry.findings.study == "attention_numerics"
    assert entry.budget == "smoke"
    assert entry.expected == 8 * 6 * 2  # arms, kinds of numbers, seeds
    assert entries([url], wanted=["another"]) == []


def test_one_study_in_two_databases_is_refused_with_both_named(tmp_path: Path) -> None:
    urls = [a_database(tmp_path / name) for name in ("one.db", "two.db")]
    with pytest.raises(ConfigError, match=r"attention_numerics is in .*one\.db and in .*two\.db"):
        entries(urls)


def test_every_status_of_a_verdict_has_a_column(tmp_path: Path) -> None:
    head = page_of(tmp_path, Entry(told(), "quick", 2)).splitlines()[7]
    assert head == f"| question | claims | {' | '.join(overview.ORDER)} |"


def test_a_page_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    with pytest.raises(StoreError, match=f"^{taken} cannot be written: Is a directory$"):
        write_overview([], taken, "python -m studies findings")
