"""Make the report of a plan from what is stored of it, and check a report that was made."""

from dataclasses import replace
from pathlib import Path

from store.errors import StoreError
from store.results import Results
from studies.analysis.results import ArmResult, gather_results
from studies.analysis.search import best, points
from studies.analysis.sentences import arm_sentence
from studies.analysis.summaries import overall
from studies.analysis.verdicts import verdicts
from studies.experiment.freeze import frozen_for, kept_for
from studies.experiment.hypothesis import Frozen
from studies.experiment.plan import Plan
from studies.report.checking import shown_in, wrong_lines
from studies.report.files import PAGE, write_report
from studies.report.findings import Findings, Front
from studies.report.gather import gather
from studies.report.numbers import mismatches
from studies.report.page import html_page
from studies.report.stored import Stored

NOTHING = Frozen((), ())
"""Where no protocol was frozen every hypothesis is exploratory."""


def make_report(plan: Plan, storage: str, folder: Path, shown: str | None = None) -> Path:
    """Write the report of a plan into a folder; return its page.

    `shown` is the address of the database as the report names it, where that is another.
    """
    return write_report(findings_of(plan, storage, shown), folder)


def check_report(plan: Plan, storage: str, folder: Path) -> list[str]:
    """Make every text of a report again from the database; what differs, a line each.

    Raises:
        StoreError: If the folder holds no report.
    """
    page = _page_in(folder)
    return wrong_lines(folder, page, findings_of(plan, storage, shown_in(page)))


def check_numbers(plan: Plan, storage: str, folder: Path) -> list[str]:
    """Work out the numbers of a page again, as `check_report` does, whatever words it has.

    Raises:
        StoreError: If the folder holds no report.
    """
    return mismatches(_page_in(folder), html_page(findings_of(plan, storage))[1])


def _page_in(folder: Path) -> str:
    file = folder / PAGE
    if not file.is_file():
        rule = f"there is no report to check: {file} is missing"
        raise StoreError(f"{rule}; name its folder by --out, or write it by leaving --verify out")
    return file.read_text(encoding="utf-8", errors="replace")


def findings_of(plan: Plan, storage: str, shown: str | None = None) -> Findings:
    """What a study found, as far as it is stored."""
    results = Results(storage)
    try:
        stored = Stored(plan, results)
        kept = kept_for(plan, results)
        frozen = NOTHING if kept is None else frozen_for(plan, kept)
        scores = [score for of_run in stored.scores.values() for score in of_run]
        runs = {cell: stored.confirming.get(cell, []) for cell in plan.cells()}
        gathered = gather_results(plan, runs, scores, stored.chosen)
        judged = verdicts(plan, gathered, frozen)
        said = {one.cell: arm_sentence(plan, one) for one in gathered}
        found = gather(stored, shown or storage, judged, said)
        return replace(found, front=_front(plan, gathered), overall=overall(plan, gathered))
    finally:
        results.close()


def _front(plan: Plan, gathered: list[ArmResult]) -> Front | None:
    """What the search of the study found, where it has one."""
    search = plan.settings.study.search
    if search is None:
        return None
    return Front(search.objectives, points(plan, gathered), best(plan, gathered))
