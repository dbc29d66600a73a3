"""Write a report: one HTML page, and beside it Markdown, figures, tables and sources."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from studies.report.figures import figures
from studies.report.findings import Findings
from studies.report.methods import latex_table
from studies.report.page import html_page, markdown_page
from studies.report.references import bibtex
from studies.report.style import style

FORMATS = ("png", "pdf")


def write_report(findings: Findings, folder: Path) -> Path:
    """Write everything into a folder, made where it is missing, and return the page.

    `report.html` stands alone. `report.md` shows the pictures in `figures/`, which lie there as
    PDF too. `scores.csv` has every number of every seed, `verdicts.csv` the contrasts,
    `hyperparameters.tex` and `references.bib` are for a paper.
    """
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    pictures = _write_figures(findings, folder)
    _write(folder / "report.md", markdown_page(findings, pictures))
    _write_csv(folder / "scores.csv", _scores(findings))
    _write_csv(folder / "verdicts.csv", _verdicts(findings))
    _write(folder / "hyperparameters.tex", latex_table(findings))
    _write(folder / "references.bib", bibtex(findings) + "\n")
    page = folder / "report.html"
    _write(page, html_page(findings)[0])
    return page


def _write(path: Path, text: str) -> None:
    """Write a file whole: a reader sees the old text or the new one."""
    half = path.with_name(path.name + ".part")
    half.write_text(text, encoding="utf-8")
    half.replace(path)


def _write_figures(findings: Findings, folder: Path) -> dict[str, str]:
    written: dict[str, str] = {}
    with style():
        for name, draw in figures(findings).items():
            figure = draw()
            for kind in FORMATS:
                whole = {
                    "png": {"dpi": 200, "metadata": {"Software": None}},
                    "pdf": {"metadata": {"CreationDate": None}},
                }
                figure.savefig(folder / "figures" / f"{name}.{kind}", **whole[kind])
            written[name] = f"figures/{name}.png"
    return written


def _write_csv(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    known = list(rows)
    half = path.with_name(path.name + ".part")
    with half.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(known[0]) if known else ["nothing"])
        writer.writeheader()
        writer.writerows(known)
    half.replace(path)


def _scores(findings: Findings) -> Iterator[dict[str, Any]]:
    for panel in findings.panels:
        for arm in panel.arms:
            for seed in arm.seeds:
                for (split, metric, length), value in sorted(seed.values.items()):
                    yield {
                        "panel": panel.label,
                        "arm": arm.name,
                        "seed": seed.run.seed,
                        "run_id": seed.run.id,
                        "split": split,
                        "length": length,
                        "metric": metric,
                        "value": value,
                        "floor": panel.floor(length) if metric == "accuracy" else None,
                    }


def _verdicts(findings: Findings) -> Iterator[dict[str, Any]]:
    for verdict in findings.verdicts:
        told = dict(vars(verdict))
        hypothesis = told.pop("hypothesis")
        yield {**vars(hypothesis), **told}
