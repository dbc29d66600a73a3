"""Questions as they are typed, with the answers that a sheet of paper gives."""

import json
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from store import Component, Ledger, Results
from store.__main__ import command_line
from store.models import ScoreRow
from store.provenance import present_hash
from store.records import PlannedRun
from tests.messages import Messages
from tests.store.conftest import make_choice

MakeRun = Callable[..., PlannedRun]
ARMS = {"none": (0.5, 0.25), "rope": (1.0, 0.75)}
"""The accuracy of each arm at lengths 8 and 16, at seed 0."""


def call(*words: str) -> Result:
    return CliRunner().invoke(command_line(), list(words))


def answers(*words: str) -> list[dict[str, Any]]:
    result = call(*words, "--format", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def filled(ledger: Ledger, make_run: MakeRun, url: str) -> str:
    """Two arms on two seeds, tuned at two rates; `none` takes twice as long and is never right."""
    trained = present_hash("studies.training.loop") or ""
    parts = (
        Component("position", "any", "variants.positions.none:None_", "ab"),
        Component("training", "training", "studies.training.loop", trained),
    )
    for arm, values in ARMS.items():
        for phase, rates in (("tune", (0.1, 0.2)), ("confirm", (0.2,))):
            for rate in rates:
                for seed in (0, 1):
                    run = make_run(
                        seed,
                        arm=arm,
                        phase=phase,
                        config=config_of(arm, rate),
                        config_hash=f"{arm} {rate}",
                        identity=f"{arm} {phase} {rate} {seed}",
                        code_hash="c1",
                        components=parts,
                    )
                    finish(ledger, run, values)
    for arm, first in (("none", 1), ("rope", 7)):
        tried = [(0.1, 0.625, [first, first + 1]), (0.2, 0.375, [first + 2, first + 3])]
        edges = {"training.learning_rate": "highest"}
        ledger.choose(make_choice(tried, 1, arm=arm, edges=edges))
    return url


def test_means_of_old_and_new_code_are_not_shown_without_a_note(
    filled: str, ledger: Ledger, make_run: MakeRun
) -> None:
    words = ["--storage", filled]
    assert "versions of the code" not in call("lengths", *words).stderr

    newer = Component("position", "any", "variants.positions.none:None_", "cd")
    run = make_run(
        2,
        arm="rope",
        config=config_of("rope", 0.2),
        config_hash="rope 0.2",
        identity="newer",
        code_hash="c2",
        components=(newer,),
    )
    finish(ledger, run, ARMS["rope"])

    for command in (
        ["lengths"],
        ["lengths", "--below", "0.9"],
        ["cost"],
        ["scores", "--group-by", "arm"],
    ):
        told = call(*command, *words).stderr
        assert "done with several versions of the code of position any; " in told, command
    with closing(Results(filled)) as results:
        assert results.mixed_code() == ["position any"]
        assert results.mixed_code(arm="none") == []


def config_of(arm: str, rate: float) -> dict[str, Any]:
    return {
        "encoder": {"position": {"name": arm}},
        "training": {"learning_rate": rate, "train_lengths": [2, 8]},
    }


def finish(ledger: Ledger, run: PlannedRun, values: tuple[float, float]) -> None:
    claim = ledger.claim("w", ledger.plan([run]))
    assert claim is not None
    nll = {"split": "validation", "length": 8, "metric": "nll", "n": 4}
    rate = run.config["training"]["learning_rate"]
    right = {"split": "test", "metric": "accuracy", "n": 4}
    scores = [
        {**nll, "value": (0.5 if rate == 0.1 else 0.25) + run.seed / 4},
        {**right, "length": 8, "value": values[0]},
        {**right, "length": 16, "value": values[1] + run.seed / 4},
    ]
    points = [{"step": step, "metric": "loss", "value": 1 / step} for step in (1, 2)]
    seconds = 10.0 if run.arm == "rope" else 20.0
    ledger.finish(claim, "done", scores=scores, curves=points, wall_seconds=seconds)


def test_lengths_are_columns_with_half_of_the_interval(filled: str) -> None:
    lines = call("lengths", "--storage", filled).stdout.splitlines()
    assert lines[0].split() == ["study", "task", "arm", "seeds", "8", "16"]
    # two values 1/4 apart: the half is 12.7062 · (1/4 / √2) / √2
    assert lines[2].split() == ["reach", "copy", "none", "2", "0.500±0.000", "0.375±1.588"]
    assert lines[3].split() == ["reach", "copy", "rope", "2", "1.000±0.000", "0.875±1.588"]


def test_lengths_below_a_level_are_told_in_words(filled: str) -> None:
    rows = answers("lengths", "--below", "0.9", "--storage", filled)
    assert [(row["arm"], row["verdict"]) for row in rows] == [
        ("none", "below 0.9 where trained"),
        ("rope", "falls below 0.9 at 16"),
    ]
    assert [(row["holds_to"], row["falls_at"], row["seeds_above"]) for row in rows] == [
        (None, 8, 0),
        (8, 16, 1),
    ]


def test_best_tells_the_rate_and_how_many_were_tried(filled: str) -> None:
    rows = answers("best", "--storage", filled)
    assert [(row["arm"], row["tried"], row["seeds"], row["nll"]) for row in rows] == [
        ("none", 2, 2, 0.375),
        ("rope", 2, 2, 0.375),
    ]
    assert {row["training.learning_rate"] for row in rows} == {0.2}
    assert {row["at_edge"] for row in rows} == {"highest training.learning_rate"}
    shown = call("best", "--storage", filled).stdout
    assert "training.learning_rate" in shown
    assert "encoder.position.name" not in shown


def test_best_is_told_beside_an_option_that_is_a_list(
    ledger: Ledger, make_run: MakeRun, url: str
) -> None:
    """Two tasks that train on other lengths, as a database of several studies holds them."""
    for task, lengths in (("copy", [2, 8]), ("reverse", [2, 4])):
        config = config_of("none", 0.1)
        config["training"]["train_lengths"] = lengths
        own = {"config": config, "config_hash": task, "identity": task}
        ids = ledger.plan([make_run(0, task=task, arm="none", phase="tune", **own)])
        ledger.choose(make_choice([(0.1, 1.0, ids)], 0, task=task, arm="none"))
    rows = answers("best", "--storage", url)
    assert [(row["task"], row["tried"], row["training.train_lengths"]) for row in rows] == [
        ("copy", 1, [2, 8]),
        ("reverse", 1, [2, 4]),
    ]


def test_cost_stands_beside_accuracy(filled: str) -> None:
    rows = answers("cost", "--storage", filled)
    assert [(row["arm"], row["value"], row["wall_seconds"]) for row in rows] == [
        ("none", 0.4375, 20.0),
        ("rope", 0.9375, 10.0),
    ]
    assert [row["efficient"] for row in rows] == [False, True]
    (at_8, _) = answers("cost", "--length", "8", "--storage", filled)
    assert (at_8["arm"], at_8["value"]) == ("none", 0.5)


def test_curves_are_points_by_run_and_step(filled: str) -> None:
    rows = answers("curves", "--storage", filled, "--where", "seed == 1", "--arm", "rope")
    assert [(row["step"], row["metric"], row["value"]) for row in rows] == [
        (1, "loss", 1.0),
        (2, "loss", 0.5),
    ]
    assert "loss" in call("curves", "--storage", filled).stdout


def test_a_difference_is_told_once_and_alike_runs_have_none(
    messages: Messages, filled: str
) -> None:
    rows = answers("diff", "1", "3", "--storage", filled)
    differing = {(row["part"], row["name"]): (row["run 1"], row["run 3"]) for row in rows}
    assert differing["config", "training.learning_rate"] == (0.1, 0.2)
    assert differing["scores", "validation 8 nll"] == (0.5, 0.25)
    assert ("config", "encoder.position.name") not in differing
    assert differing["run", "config_hash"] == ("none 0.1", "none 0.2")
    assert "differ in nothing" in call("diff", "1", "1", "--storage", filled).stdout
    lost = call("diff", "1", "99", "--storage", filled)
    assert lost.exit_code == 2
    messages(lost.stderr)


def test_means_are_grouped_by_what_runs_are(filled: str) -> None:
    words = ("--where", 'metric == "accuracy"', "--storage", filled)
    rows = answers("scores", "--group-by", "position,length", *words)
    assert [(row["position"], row["length"], row["mean"], row["seeds"]) for row in rows] == [
        ("none", 8, 0.5, 2),
        ("none", 16, 0.375, 2),
        ("rope", 8, 1.0, 2),
        ("rope", 16, 0.875, 2),
    ]
    assert {row["method"] for row in rows} == {"t, 95 %"}


def test_changed_names_the_part_and_its_runs(filled: str) -> None:
    (row,) = answers("changed", "--storage", filled)
    assert (row["name"], row["state"], row["runs"], row["arms"]) == (
        *("any", "changed", 12),
        "none, rope",
    )
    assert row["first_run"] == 1


def test_the_schema_tells_every_table_view_and_column() -> None:
    rows = answers("schema")
    assert {row["table"] for row in rows} >= {"es_runs", "es_scores", "results", "curves", "arms"}
    told = {
        row["column"]: row["about"] for row in rows if row["table"] == "es_scores" and row["column"]
    }
    assert set(told) == {column.name for column in ScoreRow.__table__.columns}
    assert told["metric"].startswith("accuracy, exact, skill, nll")


@pytest.mark.parametrize(
    "words",
    [
        ["lengths", "--metric", "acuracy"],
        ["lengths", "--below", "much"],
        ["best", "--phase", "confirm"],
        ["scores", "--group-by", "positon"],
        ["scores", "--columns", "valu"],
        ["cost", "--split", "tests"],
        ["cost", "--length", "63"],
        ["scores", "--where", "learning_rate > 0"],
        ["runs", "--where", "arm =="],
        ["export", "run"],
        ["diff", "1"],
    ],
)
def test_what_is_mistyped_is_told(messages: Messages, filled: str, words: list[str]) -> None:
    result = call(*words, "--storage", filled)
    assert result.exit_code == 2
    if result.stderr.startswith("error: "):  # else it is Typer that says it
        messages(result.stderr)


def test_an_empty_answer_tells_what_there_is(messages: Messages, filled: str) -> None:
    result = call("scores", "--where", "metric == 'skil'", "--storage", filled)
    assert result.exit_code == 0
    messages(result.stderr)


def test_choices_of_two_searches_are_told_apart(
    ledger: Ledger, make_run: MakeRun, filled: str
) -> None:
    ids = ledger.plan([make_run(phase="tune", config_hash="later", identity="later")])
    ledger.choose(make_choice([(0.2, 0.375, ids)], 0, search="later"))

    current = call("best", "--storage", filled).stdout
    both = call("best", "--with-superseded", "--storage", filled).stdout

    assert "search" not in current.splitlines()[0]
    assert "search" in both.splitlines()[0]
    searches = [row["search"] for row in answers("best", "--with-superseded", "--storage", filled)]
    assert len(set(searches)) == len(searches) == 3
