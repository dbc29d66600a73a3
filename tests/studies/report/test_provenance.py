"""Where numbers come from is told from the runs."""

from studies.analysis.results import Arm, StudyResults
from studies.report.findings import provenance
from tests.studies.made_up import plan, seed, task


def told(**versions: list[str]) -> dict[str, str]:
    """The provenance of final runs of these versions of their source, arm by arm."""
    arms = [
        Arm({n: seed({}, seed=n, code_hash=code) for n, code in enumerate(codes)}, name=name)
        for name, codes in versions.items()
    ]
    results = StudyResults(plan(2), [task(*arms, lengths=[16])])
    return provenance(results, lambda number: {}, "sqlite:///x.db")


def test_arms_of_different_parts_are_of_one_version_of_the_source() -> None:
    found = told(rope=["a", "a"], learned=["b", "b"])
    assert found["confirming runs"] == "4, of 1 version of the source"
    assert found["last finished"] == "2026-01-02 00:00:00 UTC"


def test_an_arm_whose_source_changed_between_its_runs_is_of_two() -> None:
    found = told(rope=["a", "a", "c"], learned=["b"])
    assert found["confirming runs"] == "4, of 2 versions of the source"
