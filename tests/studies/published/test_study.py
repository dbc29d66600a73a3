"""Published tables as studies: every arm builds, every protocol plans."""

from pathlib import Path

import pytest

from registry import UnknownNameError
from registry.build import build_encoder
from studies.execution.preview import preview
from studies.experiment.load import Typed, load_draft
from studies.experiment.validate import draft_problems
from studies.published import load, names, study_of
from studies.published.study import differences, shown

LARGE = ("ruoss_2023", "kazemnejad_2023")
"""Tables of many rows, each at many lengths."""


def marks(name: str, budget: str) -> list[pytest.MarkDecorator]:
    """The protocol of a large table takes seconds to check."""
    return [pytest.mark.slow] if name in LARGE and budget in ("paper", "standard") else []


BUDGETS = [
    pytest.param(name, budget, id=f"{name}-{budget}", marks=marks(name, budget))
    for name in names()
    for budget in study_of(name).budgets
]


@pytest.mark.parametrize(("name", "budget"), BUDGETS)
def test_every_budget_is_a_plan_without_problems(name: str, budget: str) -> None:
    draft = load_draft(study_of(name), Typed(budget))
    assert draft.cells()
    assert not draft_problems(draft)
    table = load(name)
    assert set(draft.labels()) <= set(table.runnable_rows())
    assert set(draft.arms) <= set(table.runnable_arms())


@pytest.mark.parametrize("name", names())
def test_every_arm_builds(name: str) -> None:
    draft = load_draft(study_of(name), Typed("smoke"))
    for cell in draft.cells():
        config = draft.config(cell)
        if config.encoder is not None:
            assert build_encoder(config.encoder).config.d_model == config.encoder.d_model


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=marks(name, "paper")) for name in names()]
)
def test_a_call_by_the_paper_differs_in_nothing_but_what_the_table_says(name: str) -> None:
    draft = load_draft(study_of(name), Typed("paper"))
    assert differences(load(name), draft) == []


def test_what_a_budget_changes_is_said() -> None:
    draft = load_draft(study_of("peluche_2023"), Typed("quick", options={"seeds": 3}))
    told = differences(load("peluche_2023"), draft)
    assert "training.batch_size: 128 here, 512 there" in told
    assert "study.seeds: 3 here, 5 there" in told
    assert not any("d_model" in one for one in told)


def test_rows_and_arms_that_are_left_out_are_said() -> None:
    draft = load_draft(
        study_of("ruoss_2023", ["even_pairs"]), Typed("paper", options={"only": ["rope"]})
    )
    rows, columns = differences(load("ruoss_2023"), draft)
    assert "bucket_sort" in rows
    assert "even_pairs" not in rows
    assert columns.startswith("columns not run in this call: none, sin_cos")


def test_a_plan_says_what_differs_from_the_source_before_anything_is_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    study = study_of("xiong_2020")
    preview(load_draft(study, Typed("smoke")), f"sqlite:///{tmp_path}/none.db", 1)
    said = capsys.readouterr().out
    assert f"Different from the source, {load('xiong_2020').source}:\n" in said
    assert "\n- Theirs is an encoder-decoder" in said
    assert "\n- study.seeds: 2 here, 10 there" in said
    assert "\n† not verified at its source: exponent" in said


def test_what_is_not_verified_is_said_before_anything_is_run() -> None:
    study = study_of("ruoss_2023")
    lines = study.notes(load_draft(study, Typed("smoke")))
    assert "- training.steps: 5 here, 2,000,000 there" in lines
    assert "- encoder.dropout.sublayer: 0.0 here, 0.1 there" in lines
    assert lines[-1].startswith("† not verified at its source: The values, and the numbers")


def test_settings_are_shown_in_few_signs() -> None:
    assert shown(list(range(41, 501))) == "41, 42 … 500 (460 of them)"
    assert shown(2_000_000) == "2,000,000"
    assert shown({"name": "relu", "d_ff": 256}) == "relu (d_ff 256)"
    assert (shown(None), shown(True), shown(0.001)) == ("none", "yes", "0.001")
    assert (shown(0.0), shown(1.0), shown(False), shown(1)) == ("0.0", "1.0", "no", "1")


def test_rows_may_be_chosen_and_an_unknown_one_names_its_nearest() -> None:
    study = study_of("ruoss_2023", ["bucket_sort"])
    assert [one["label"] for one in study.budgets["paper"].settings["study"]["panels"]] == [
        "bucket_sort"
    ]
    with pytest.raises(UnknownNameError, match="'bucket_sort'"):
        study_of("ruoss_2023", ["buket_sort"])
    with pytest.raises(UnknownNameError, match="run here"):
        study_of("ruoss_2023", ["solve_equation"])


def test_a_published_table_is_run_by_its_own_command() -> None:
    study = study_of("xiong_2020")
    assert study.program == "python -m studies.published --table xiong_2020"
    assert study.launcher == "python -m studies.published"
