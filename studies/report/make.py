"""Make the report of a plan from what is stored of it, or check one that was made."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from html import unescape
from itertools import zip_longest
from pathlib import Path

from store.errors import StoreError
from studies.experiment.plan import Plan
from studies.report.figures import figures
from studies.report.files import PAGE, texts, write_report
from studies.report.findings import Findings, findings_of
from studies.report.numbers import mismatches, numbers_of
from studies.report.page import html_page

MOST = 20
"""So many lines are told of one file; more are counted."""
AROUND = 3
"""Words that are told on either side of what differs."""


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


def shown_in(page: str) -> str | None:
    """The address of the database as a page gives it, which no number depends on."""
    found = re.search(r"<th>database</th><td>(.*?)</td>", page)
    return unescape(found.group(1)) if found else None


def wrong_lines(folder: Path, page: str, fresh: Findings) -> list[str]:
    """What the files of a report say other than the same report made anew, a line each.

    Numbers of the page are told by their keys; everything else by file and line. Pictures are
    left out.
    """
    made = texts(fresh, dict.fromkeys(figures(fresh), ""))
    wrong = mismatches(page, numbers_of(made[PAGE]))
    for name, text in made.items():
        file = folder / name
        if not file.is_file():
            wrong.append(f"{name}: is missing")
            continue
        told = file.read_text(encoding="utf-8", errors="replace")
        wrong += _wrong_page(told, text) if name == PAGE else _wrong_text(name, told, text)
    return wrong


def _wrong_page(told: str, now: str) -> Iterator[str]:
    """What a page says otherwise; its pictures are not read, so that no line has a number."""
    lines = _differing(*(_without_what_is_keyed(page).splitlines() for page in (told, now)))
    return _few(PAGE, [f"{PAGE}: {said}" for _, said in lines])


def _wrong_text(name: str, told: str, now: str) -> Iterator[str]:
    lines = _differing(told.splitlines(), now.splitlines())
    return _few(name, [f"{name}, line {number}: {said}" for number, said in lines])


def _few(name: str, lines: list[str]) -> Iterator[str]:
    yield from lines[:MOST]
    if len(lines) > MOST:
        yield f"{name}: {len(lines) - MOST} further lines differ"


def _without_what_is_keyed(page: str) -> str:
    """A page without numbers that have a key, pictures and style."""
    for element in ("svg", "style"):
        page = re.sub(rf"<{element}\b.*?</{element}>\s*", "", page, flags=re.DOTALL)
    return re.sub(r"<data [^>]*>.*?</data>", "…", page, flags=re.DOTALL)


def _differing(told: list[str], now: list[str]) -> Iterator[tuple[int, str]]:
    """The lines that differ, by their number in what is told."""
    matcher = SequenceMatcher(None, told, now, autojunk=False)
    for same, start, end, other, last in matcher.get_opcodes():
        if same != "equal":
            pairs = zip_longest(told[start:end], now[other:last], fillvalue="")
            for number, (one, two) in enumerate(pairs, start + 1):
                yield number, _said(one, two)


def _said(told: str, now: str) -> str:
    """The words in which two lines differ, with a few more around them."""
    one, two = (unescape(re.sub(r"<[^>]*>", " ", line)).split() for line in (told, now))
    if one == two:
        one, two = told.split(), now.split()
    head = _alike(one, two)
    tail = _alike(one[head:][::-1], two[head:][::-1])
    start, end = max(head - AROUND, 0), max(tail - AROUND, 0)
    old, new = (" ".join(words[start : len(words) - end]) for words in (one, two))
    return f"it says {old or 'nothing'!r}, the database {new or 'nothing'!r}"


def _alike(one: list[str], two: list[str]) -> int:
    """How many words two lists have in common from their start on."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b),
        min(len(one), len(two)),
    )
