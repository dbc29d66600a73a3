"""Write a report: one HTML page, and beside it Markdown, figures, tables and sources."""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from store.errors import StoreError
from store.files import replacing, writing
from store.metrics import metric_of
from studies.report.figures import figures
from studies.report.findings import Findings
from studies.report.methods import latex_table
from studies.report.page import html_page, markdown_page
from studies.report.provenance import bibtex
from studies.report.style import as_written, style

FORMATS = ("png", "pdf")
PAGE = "report.html"


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
        _write_figures(findings, folder)
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
    """What the files of a report say, by name; `drawn` are pictures of the page at hand."""
    pictures = {name: f"figures/{name}.png" for name in figures(findings)}
    return {
        "report.md": markdown_page(findings, pictures),
        "scores.csv": _csv(_scores(findings)),
        "verdicts.csv": _csv(_verdicts(findings)),
        "hyperparameters.tex": latex_table(findings),
        "references.bib": bibtex(findings.sources) + "\n",
        PAGE: html_page(findings, drawn)[0],
    }


def _write_figures(findings: Findings, folder: Path) -> None:
    with style():
        for name, draw in figures(findings).items():
            figure = as_written(draw())
            for kind in FORMATS:
                whole = {
                    "png": {"dpi": 200, "metadata": {"Software": None}},
                    "pdf": {"metadata": {"CreationDate": None}},
                }
                figure.savefig(folder / "figures" / f"{name}.{kind}", **whole[kind])


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
        told = dict(vars(verdict))
        told = {**vars(told.pop("hypothesis")), **told}
        yield {key: _cell(value) for key, value in told.items()}


def _cell(value: Any) -> Any:
    """What a cell holds; of several values each, apart from the others."""
    return "; ".join(map(str, value)) if isinstance(value, tuple) else value
