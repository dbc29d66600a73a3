"""The study of head counts: its plans, and all of it once."""

from pathlib import Path

import pytest

from studies.experiment.contrasts import asked
from studies.experiment.draft import Draft
from studies.experiment.overrides import gather
from studies.head_count import FIXED, OFFSETS, RANK, STUDY, remark
from tests.studies.made_up import check_draft
from tests.studies.studying import call_in, means_of


@pytest.mark.parametrize(
    "budget", ["smoke", "quick", pytest.param("standard", marks=pytest.mark.slow)]
)
def test_every_budget_asks_every_claim(budget: str) -> None:
    draft = Draft(STUDY, gather(STUDY.budgets[budget].settings))
    check_draft(draft)
    assert len(asked(draft)) == len(draft.settings.study.claims())


def test_parameters_stay_at_a_fixed_width_and_grow_at_a_fixed_d_head() -> None:
    from studies.seeds import Seeds
    from studies.training.models import build_model

    draft = Draft(STUDY, gather(STUDY.budgets["quick"].settings))

    def size(panel: str, arm: str) -> int:
        model = build_model(draft.config(draft.cell(panel, arm)), Seeds(0, 0))
        return sum(one.numel() for one in model.parameters())

    tables, attention, norms = (17 + 16) * 64, 4 * (64 + 1) * 64, 3 * 2 * 64
    feedforward, logits = 2 * 64 * 256 + 256 + 64, (64 + 1) * 8 * 16
    counted = tables + attention + norms + feedforward + logits
    assert size(OFFSETS, "1 head × 8 links") == size(OFFSETS, "64 heads × 8 links") == counted
    assert size(FIXED, "1 head of 16") < size(FIXED, "8 heads of 16")


def test_the_rank_panel_fits_heads_as_wide_as_those_of_its_arm() -> None:
    draft = Draft(STUDY, gather(STUDY.budgets["quick"].settings))
    for arm, width in (("1 head", 64), ("4 heads", 16), ("64 heads", 1)):
        encoder = draft.config(draft.cell(RANK, arm)).encoder
        assert encoder is not None
        assert (encoder.d_head or encoder.d_model // encoder.n_heads) == width


@pytest.mark.parametrize(
    ("position", "told"),
    [("alibi", True), ("{name: alibi, slopes: geometric}", True),
     ("{name: alibi, slopes: 0.25}", False), ("rope", False)],
)  # fmt: skip
def test_slopes_of_alibi_that_move_with_the_heads_are_told(position: str, told: bool) -> None:
    made = gather(STUDY.budgets["quick"].settings, None, [f"encoder.position={position}"])
    arm = next(iter(Draft(STUDY, made).arms.values()))
    assert bool(remark(arm, made)) == told


@pytest.mark.slow
def test_the_whole_study_runs_and_wide_heads_realize_any_pattern(tmp_path: Path) -> None:
    out = call_in(tmp_path, STUDY.name, "--budget=smoke", "--report=report")
    assert "heads serve links" in out
    errors = means_of(tmp_path, "error")
    # Bhojanapalli et al. 2020, theorem 1: 16 tokens, heads of 64, 16 and 1.
    assert errors["1 head"] < 0.001
    assert errors["4 heads"] < 0.001
    assert errors["64 heads"] > 0.1
