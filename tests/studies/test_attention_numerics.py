"""The study of numerics: its plans, and all of it once."""

from pathlib import Path

import pytest

from studies.attention_numerics import METRICS, STUDY
from studies.experiment.contrasts import asked
from studies.experiment.draft import Draft
from studies.experiment.hypothesis import SIGNS
from studies.experiment.overrides import gather
from tests.studies.made_up import check_draft
from tests.studies.studying import call_in, means_of


@pytest.mark.parametrize("budget", STUDY.budgets)
def test_every_budget_asks_every_claim(budget: str) -> None:
    draft = Draft(STUDY, gather(STUDY.budgets[budget].settings))
    check_draft(draft)
    assert len(asked(draft)) == len(draft.settings.study.claims()) == 5


def test_directions_are_those_of_the_words() -> None:
    claims = Draft(STUDY, gather(STUDY.budgets["quick"].settings)).settings.study.claims()
    read = {one.name: f"{one.arm} {SIGNS[one.direction]} {one.against}" for one in claims}
    assert read["sdpa is exact in float32"] == "sdpa ≈ explicit"
    assert read["no scale, no spread"] == "unscaled < explicit"


@pytest.mark.slow
def test_the_whole_study_runs_and_no_implementation_loses_more_than_it_must(tmp_path: Path) -> None:
    out = call_in(tmp_path, STUDY.name, "--budget=smoke")
    assert all(f"  {title}\n" in out for title in METRICS.values())
    errors, entropy = (means_of(tmp_path, metric) for metric in ("forward_rms", "entropy"))
    for arm in ("explicit", "chunked", "sdpa", "sdpa_math"):
        assert 0 < errors[arm] < 16
    assert entropy["unscaled"] < entropy["explicit"] / 2
