"""The command of recipes."""

import sys
from pathlib import Path

import pytest

from store.results import Results
from studies.cli.named import recipes_app, with_own_report
from studies.experiment.plan import latest_plan
from studies.recipes import RECIPES


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call_here(*words: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["studies.recipes", *words])
        with pytest.raises(SystemExit) as end:
            recipes_app()
    return int(end.value.code or 0)


def test_the_list_names_every_recipe_with_its_claim_source_variable_and_cost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call_here("--list") == 0

    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert [line for line in lines if line in RECIPES.names()] == RECIPES.names()
    place = lines.index("post_ln_warmup")
    assert lines[place + 1 : place + 4] == [
        "  Twelve Post-LN layers learn with a warm-up and do not without one.",
        "  Xiong et al. 2020 (arXiv:2002.04745)",
        "  varies training.warmup_steps; quick: 3 CPU minutes",
    ]


def test_a_recipe_takes_the_options_of_a_study(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call_here("head_width", "--describe", "--set", "encoder.d_model=32") == 0

    described = capsys.readouterr().out
    assert "Do heads narrower than 32 channels hurt" in described
    assert "d_model: 32" in described
    assert "8 heads of 8 < 2 heads of 32" in described
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["head_with"], "no recipe is named 'head_with'; did you mean 'head_width'"),
        (["all", "--set=training.stepps=3"], "unknown key 'stepps'; did you mean 'steps'?"),
        (["all", "--bugdet=smoke"], "No such option"),
        (["activation", "--budget=paper"], "no budget is named 'paper'"),
    ],
)
def test_bad_input_ends_with_code_2_and_runs_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert call_here(*words) == 2

    assert told in capsys.readouterr().err
    assert list(here.iterdir()) == []


@pytest.mark.slow
def test_several_recipes_run_in_turn_and_their_verdicts_come_last(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is trained here: what γ and β can undo is worked out."""
    assert call_here("undo_layernorm,undo_layernorm", "--workers=1", "--seeds=4") == 0

    printed = capsys.readouterr().out
    verdicts = printed[printed.index("Verdicts, with the effect") :].splitlines()[1:]
    assert [line.split()[-2] for line in verdicts if line.strip()] == [
        *("refuted", "supported", "supported"),
    ] * 2
    plan = latest_plan(Results("sqlite:///sandbox.db"), "undo_layernorm")
    assert (plan.program, plan.protocol.seeds) == ("python -m studies.recipes undo_layernorm", 4)


@pytest.mark.parametrize(
    ("words", "own"),
    [
        (["--report", "told", "--seeds", "5"], ["--report", "told/activation", "--seeds", "5"]),
        (["--seeds=5", "--report=told"], ["--seeds=5", "--report=told/activation"]),
        (["--seeds=5"], ["--seeds=5"]),
    ],
)
def test_each_of_several_recipes_has_a_folder_for_its_report(
    words: list[str], own: list[str]
) -> None:
    assert with_own_report(words, "activation") == own


@pytest.mark.slow
def test_every_recipe_can_be_tried_in_a_smoke_run(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call_here("all", "--budget=smoke") == 0

    printed = capsys.readouterr().out
    assert all(f"python -m studies.recipes {name}" in printed for name in RECIPES.names())
