"""The papers behind the parts and tasks of a study, as BibTeX."""

import re
from importlib import resources

from studies.report.findings import Findings

ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
ENTRY = re.compile(r"^@\w+\{.*?^\}$", re.DOTALL | re.MULTILINE)


def known() -> dict[str, str]:
    """The entries that we have, by arXiv number."""
    file = resources.files("studies.report").joinpath("references.bib")
    entries = ENTRY.findall(file.read_text(encoding="utf-8"))
    return {_number(entry): entry for entry in entries}


def _number(entry: str) -> str:
    found = re.search(r"eprint\s*=\s*\{([^}]+)\}", entry)
    if found is None:
        raise ValueError(f"an entry has no eprint: {entry.splitlines()[0]}")
    return found[1]


def cited(text: str) -> list[str]:
    """The arXiv numbers in a text, in their order."""
    return list(dict.fromkeys(ARXIV.findall(text)))


def bibtex(findings: Findings) -> str:
    """The entries of every paper that a part or a task of the study names as its source.

    A paper that we have no entry for is named in a comment.
    """
    entries = known()
    return "\n\n".join(
        entries.get(number, f"% no entry for arXiv:{number}") for number in findings.sources
    )
