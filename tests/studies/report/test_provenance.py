"""Where numbers come from is told from the runs."""

from dataclasses import replace
from typing import Any

from studies.report.provenance import provenance
from studies.report.stored import Stored
from tests.studies.report.synthetic import run


def stored(**cells: list[str]) -> Any:
    """Confirming runs of these versions of their source, arm by arm."""
    confirming = {
        name: [replace(run(name, seed), code_hash=code) for seed, code in enumerate(codes)]
        for name, codes in cells.items()
    }
    told = object.__new__(Stored)
    vars(told).update(confirming=confirming, results=None)
    return told


def test_arms_of_different_parts_are_of_one_version_of_the_source() -> None:
    told = provenance(stored(rope=["a", "a"], learned=["b", "b"]), "sqlite:///x.db")
    assert told["confirming runs"] == "4, of 1 version of the source"
    assert told["last finished"] == "2026-01-02 00:00:00 UTC"


def test_an_arm_whose_source_changed_between_its_runs_is_of_two() -> None:
    told = provenance(stored(rope=["a", "a", "c"], learned=["b"]), "sqlite:///x.db")
    assert told["confirming runs"] == "4, of 2 versions of the source"
