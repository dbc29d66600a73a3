"""Write a report, one HTML page with Markdown, figures, tables and sources beside it; or check it.

A check makes every text again from the database and tells what a written report says otherwise.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from html import unescape
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

from store.errors import StoreError
from store.files import replacing, writing
from store.metrics import metric_of
from studies.experiment.plan import Plan
from studies.report.figures import figures
from studies.report.findings import Findings, bibtex, findings_of
from studies.report.numbers import Numbers, mismatches, read_numbers
from studies.report.page import html_page, latex_table, markdown_page
from studies.report.style import as_written, style

FORMATS: dict[str, dict[str, Any]] = {
    "png": {"dpi": 200, "metadata": {"Software": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}
PAGE = "report.html"
MOST = 20
"""At most so many lines of a file are listed; more are counted."""
AROUND = 3
"""So many words are quoted on either side of a difference."""


def make_report(plan: Plan, storage: str, folder: Path, shown: str | None = None) -> Path:
    """Write the report of a plan into a folder; return its page.

    `shown` is the address of the database as the report names it, where that is another.
    """
    return write_report(findings_of(plan, storage, shown), folder)


def write_report(findings: Findings, folder: Path) -> Path:
    """Write everything into a folder, made where it is missing, and return the page.

    `report.html` stands alone. `report.md` shows the pictures in `figures/`, which lie there as
    PDF too. `scores.csv` has every number of every seed, `verdicts.csv` the contrasts,
    `hyperparameters.tex` and `references.bib` are for a paper.

    Raises:
        StoreError: If the folder cannot be written.
    """
    make_folder(folder)
    with writing(folder):
        (folder / "figures").mkdir(exist_ok=True)
        with style():
            for name, draw in figures(findings).items():
                figure = as_written(draw())
                for kind, options in FORMATS.items():
                    figure.savefig(folder / "figures" / f"{name}.{kind}", **options)
        for name, text in texts(findings).items():
            with replacing(folder / name) as half:
                half.write_text(text, encoding="utf-8", newline="")
    return folder / PAGE


def make_folder(folder: Path) -> None:
    """Make the folder of a report where it is missing.

    Raises:
        StoreError: If it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        rule = f"{folder} cannot be the folder of a report: {error.strerror or error}"
        raise StoreError(f"{rule}; name a new folder, or one that is there") from error


def texts(findings: Findings, drawn: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the text files of a report by name; `drawn` are pictures of the page at hand."""
    pictures = {name: f"figures/{name}.png" for name in figures(findings)}
    return {
        "report.md": markdown_page(findings, pictures),
        "scores.csv": _csv(_scores(findings)),
        "verdicts.csv": _csv(_verdicts(findings)),
        "hyperparameters.tex": latex_table(findings),
        "references.bib": bibtex(findings.sources) + "\n",
        PAGE: html_page(findings, drawn)[0],
    }


def _csv(rows: Iterator[dict[str, Any]]) -> str:
    known, file = list(rows), io.StringIO(newline="")
    writer = csv.DictWriter(file, list(known[0]) if known else ["nothing"])
    writer.writeheader()
    writer.writerows(known)
    return file.getvalue()


def _scores(findings: Findings) -> Iterator[dict[str, Any]]:
    for task in findings.tasks:
        for arm in task.arms:
            for number, seed in arm.seeds.items():
                for (split, metric, length), value in sorted(seed.places.items()):
                    has_floor = metric_of(metric).floor_in is not None
                    yield {
                        "panel": task.label,
                        "arm": arm.name,
                        "seed": number,
                        "run_id": seed.run and seed.run.id,
                        "split": split,
                        "length": length,
                        "metric": metric,
                        "value": value,
                        "floor": task.blind_guess(length) if has_floor else None,
                    }


def _verdicts(findings: Findings) -> Iterator[dict[str, Any]]:
    for verdict in findings.verdicts:
        row = {**vars(verdict.hypothesis), **vars(verdict)}
        del row["hypothesis"]
        yield {key: _cell(value) for key, value in row.items()}


def _cell(value: Any) -> Any:
    """Return the content of a cell, several values of it joined."""
    return "; ".join(map(str, value)) if isinstance(value, tuple) else value


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
    """Return the address of the database on a page; no number depends on it."""
    found = re.search(r"<th>database</th><td>(.*?)</td>", page)
    return unescape(found.group(1)) if found else None


def wrong_lines(folder: Path, page: str, fresh: Findings) -> list[str]:
    """Compare the files of a report with the same report made anew; one line per difference.

    Numbers of the page are named by their keys; everything else by file and line. Pictures are
    left out.
    """
    made = texts(fresh, dict.fromkeys(figures(fresh), ""))
    wrong = mismatches(page, Numbers(read_numbers(made[PAGE])))
    for name, text in made.items():
        file = folder / name
        if file.is_file():
            wrong += _wrong_in(name, file.read_text(encoding="utf-8", errors="replace"), text)
        else:
            wrong.append(f"{name}: is missing")
    return wrong


def _wrong_in(name: str, written: str, now: str) -> Iterator[str]:
    """Yield what differs in a file; of a page, whose pictures are skipped, without line numbers."""
    if name == PAGE:
        written, now = map(_without_what_is_keyed, (written, now))
    lines = list(_differing(written.splitlines(), now.splitlines()))
    for number, said in lines[:MOST]:
        yield f"{name}: {said}" if name == PAGE else f"{name}, line {number}: {said}"
    if len(lines) > MOST:
        yield f"{name}: {len(lines) - MOST} further lines differ"


def _without_what_is_keyed(page: str) -> str:
    """Return a page without numbers that have a key, pictures and style."""
    for element in ("svg", "style"):
        page = re.sub(rf"<{element}\b.*?</{element}>\s*", "", page, flags=re.DOTALL)
    return re.sub(r"<data [^>]*>.*?</data>", "…", page, flags=re.DOTALL)


def _differing(written: list[str], now: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that differ, with their number in the file."""
    matcher = SequenceMatcher(None, written, now, autojunk=False)
    for same, start, end, other, last in matcher.get_opcodes():
        if same != "equal":
            pairs = zip_longest(written[start:end], now[other:last], fillvalue="")
            for number, (one, two) in enumerate(pairs, start + 1):
                yield number, _said(one, two)


def _said(written: str, now: str) -> str:
    """Quote the words in which two lines differ, with a few more around them."""
    one, two = (unescape(re.sub(r"<[^>]*>", " ", line)).split() for line in (written, now))
    if one == two:
        one, two = written.split(), now.split()
    head = _alike(one, two)
    tail = _alike(one[head:][::-1], two[head:][::-1])
    start, end = max(head - AROUND, 0), max(tail - AROUND, 0)
    old, new = (" ".join(words[start : len(words) - end]) for words in (one, two))
    return f"it says {old or 'nothing'!r}, the database {new or 'nothing'!r}"


def _alike(one: list[str], two: list[str]) -> int:
    """Count the words that two lists share from their start on."""
    pairs = zip(one, two, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
