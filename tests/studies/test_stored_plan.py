"""A study is read from its stored plan: no plug-in, no file and no folder of the call is needed."""

import html
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import studies.published
from registry import isolated
from registry.registry import registry_of
from store import Results
from studies import extrapolation, head_search, link_ablation
from studies.cli.app import app
from studies.execution.preview import stored_runs
from studies.experiment.load import Typed, load_draft
from studies.experiment.plan import Plan, latest_plan
from studies.experiment.resolve import resolve
from studies.experiment.study import Study
from studies.experiment.study_file import read_study
from studies.recipes import RECIPES
from studies.report.findings import findings_of
from studies.report.overview import entries
from studies.report.page import html_page, markdown_page
from studies.training.settings import RunConfig, check_run
from tests.studies.made_up import FAR, NEAR, MadeUp, plan
from tests.studies.made_up import draft as draft_of

FILE = """
name: mine
question: Does my position carry further?
variable: encoder.position
import: [parts.py]
encoder: {d_model: 8, n_heads: 2, n_layers: 1}
task: {name: shift, k: 1, alphabet: 3}
training: {steps: 10, warmup_steps: 0, train_lengths: [2, 16]}
evaluation: {test_lengths: [16, 32], examples: 16}
study:
  arms: [mine, rope]
  seeds: 5
  learning_rates: [0.001]
  hypotheses:
    - {name: further, claim: Mine does., arm: mine, against: rope, panel: shift, lengths: [32]}
"""
PART = """
from registry import register
from variants.positions import Position


@register
class Mine(Position):
    name = "mine"
"""


@pytest.fixture
def stored(tmp_path: Path) -> MadeUp:
    """A finished study of a file with a plug-in, both of which are gone."""
    home = tmp_path / "home"
    home.mkdir()
    file, parts = home / "mine.yaml", home / "parts.py"
    file.write_text(FILE)
    parts.write_text(PART)
    with isolated():
        made = MadeUp(tmp_path, load_draft(read_study(file), Typed()), {"mine": FAR, "rope": NEAR})
    file.unlink()
    parts.unlink()
    assert "mine" not in registry_of("position")
    return made


def test_reports_findings_and_bundles_need_neither_file_nor_plug_in(
    stored: MadeUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    for words in (
        ["report", "mine", "--out", "report", "--storage", stored.url],
        ["report", "mine", "--out", "report", "--storage", stored.url, "--verify"],
        ["findings", "--storage", stored.url],
        ["freeze", "mine", "--out", "bundle", "--storage", stored.url],
        ["freeze", "--check", "bundle"],
    ):
        done = CliRunner().invoke(app, words)
        assert (done.exit_code, done.stderr) == (0, ""), words

    page = Path("report/report.md").read_text()
    assert "Does my position carry further?" in page
    assert "Mine does." in page
    assert Path("bundle/report/report.md").exists()


def test_what_is_read_back_is_what_was_planned(stored: MadeUp) -> None:
    with closing(Results(stored.url)) as results:
        found = latest_plan(results, "mine")

    assert found == stored.plan
    told = findings_of(found, stored.url)
    assert [(one.hypothesis.name, one.status) for one in told.verdicts] == [
        ("further", "supported")
    ]


def test_a_report_says_so_where_code_has_changed_since_a_run(tmp_path: Path) -> None:
    made = MadeUp(tmp_path, draft_of(5), {"rope": FAR, "learned": NEAR})
    other = {
        code: tuple(
            replace(part, source_hash="new") if part.name == "rope" else part for part in parts
        )
        for code, parts in made.plan.code.items()
    }
    later = replace(made.plan, code=other)

    found = findings_of(later, made.url)

    assert findings_of(made.plan, made.url).notes == []
    [note] = found.notes
    assert note == "The code of arm 'rope' changed after 5 of its runs (first: run 1)."
    assert note in markdown_page(found, {})
    assert note in html.unescape(html_page(found)[0])


def test_an_arm_that_diverged_at_every_setting_is_a_failure_and_leaves_nothing_to_do(
    tmp_path: Path,
) -> None:
    made = MadeUp(
        tmp_path,
        draft_of(2, learning_rates=[0.01, 0.1], hypotheses=[]),
        {"learned": NEAR[:2]},
        nlls={"rope": {0.01: None, 0.1: None}, "learned": {0.01: 0.2, 0.1: 0.4}},
        tuned=dict.fromkeys((0.01, 0.1), NEAR[0]),
    )
    [entry] = entries([made.url])

    assert entry.expected == 2
    assert "Unfinished" not in entry.basis
    stored = stored_runs(made.plan, made.url)
    assert [stored[made.plan.cell("shift", arm)] for arm in ("rope", "learned")] == [(2, 2), (4, 4)]
    page = markdown_page(findings_of(made.plan, made.url), {})
    assert "- shift, rope, tuning: no result, training diverged at every setting" in page


def test_the_command_of_a_report_is_that_of_its_plan(stored: MadeUp) -> None:
    typed = replace(stored.plan, command="python -m studies.run mine.yaml --arms mine,rope")

    assert typed == stored.plan
    assert findings_of(typed, stored.url).command == typed.command
    assert Plan.from_data(typed.to_data()).command == typed.command


SMOKE = [extrapolation.STUDY, head_search.STUDY, link_ablation.STUDY]
SMOKE += [RECIPES.read("post_ln_warmup"), studies.published.study_of("xiong_2020")]


@pytest.mark.parametrize("study", SMOKE, ids=lambda study: study.name)
def test_a_plan_survives_json(study: Study) -> None:
    made = resolve(load_draft(study, Typed("smoke")))

    assert Plan.from_data(json.loads(json.dumps(made.to_data()))) == made


def test_a_plan_is_resolved_alike_each_time_and_says_what_changed() -> None:
    assert plan(5) == plan(5)
    assert plan(5) != plan(6)
    assert plan(5).to_data() == plan(5).to_data()


def test_each_config_of_a_plan_is_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked, planned and resolved, each config of a study with every claim is made once."""
    calls: list[object] = []

    def counted(roots: Mapping[str, Any]) -> RunConfig:
        calls.append(roots)
        return check_run(roots)

    monkeypatch.setattr("studies.experiment.draft.check_run", counted)

    draft = load_draft(extrapolation.STUDY, Typed("quick"))
    resolve(draft)

    assert len(calls) == len(draft.cells()) * len(draft.settings.study.settings()) == 12 * 3


def test_the_same_call_keeps_one_plan_and_another_call_its_own(tmp_path: Path) -> None:
    first = MadeUp(tmp_path, draft_of(5), {"rope": FAR, "learned": NEAR})
    MadeUp(tmp_path, draft_of(5), {"rope": FAR, "learned": NEAR})
    with closing(Results(first.url)) as results:
        assert len(results.plans("made_up")) == 1

    MadeUp(tmp_path, draft_of(4), {"rope": FAR, "learned": NEAR})
    MadeUp(tmp_path, draft_of(5), {"rope": FAR, "learned": NEAR})
    with closing(Results(first.url)) as results:
        assert len(results.plans("made_up")) == 2
        assert latest_plan(results, "made_up").protocol.seeds == 5
