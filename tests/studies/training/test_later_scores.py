"""Stored models at further lengths: on the study's own sets, added once, and in no verdict."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from registry import ConfigError
from store import Ledger, Results
from store.records import Run
from studies.analysis.gather import results_of
from studies.analysis.printing import print_answer
from studies.analysis.verdicts import verdicts
from studies.experiment.freeze import frozen_for
from studies.seeds import Seeds
from studies.training.evaluation import MEASURES
from studies.training.saved_models import Asked, add_later_scores, measure
from tests.messages import Messages
from tests.studies.stored_models import Desk, copied, done_in, plan


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A database with two seeds of each of two arms, with weights."""
    return done_in(tmp_path_factory.mktemp("made"))


@pytest.fixture
def url(made: Desk, tmp_path: Path) -> str:
    """The same, to be added to."""
    return copied(made, tmp_path)


def values(url: str, run: Run, length: int, split: str = "test") -> dict[str, Any]:
    scores = Results(url).scores(where=f"id == {run.id}", length=length, split=split)
    return {score.metric: (score.n, score.correct, score.value) for score in scores}


@pytest.mark.parametrize(("split", "length"), [("test", 6), ("test", 10), ("validation", 4)])
@pytest.mark.parametrize("number", [2, 4])
def test_a_length_that_the_study_scored_gets_the_identical_numbers(
    made: Desk, number: int, split: str, length: int
) -> None:
    run = Results(made.url).run(number)

    scores, _ = measure(run, Asked((length,), split), made.url)

    again = {score.metric: (score.n, score.correct, score.value) for score in scores}
    assert again == values(made.url, run, length, split)
    assert set(again) == set(MEASURES)


@pytest.mark.parametrize("purpose", ["data", "init"])
def test_another_random_stream_would_be_noticed(
    made: Desk, monkeypatch: pytest.MonkeyPatch, purpose: Any
) -> None:
    run = Results(made.url).run(2)
    right = Seeds.generator
    monkeypatch.setattr(Seeds, "generator", lambda self, _, *index: right(self, purpose, *index))

    scores, _ = measure(run, Asked((10,)), made.url)

    [nll] = [score.value for score in scores if score.metric == "nll"]
    assert nll != values(made.url, run, 10)["nll"][2]


def test_the_weights_of_another_seed_would_be_noticed(made: Desk) -> None:
    first, second = (Results(made.url).run(number) for number in (1, 2))

    assert values(made.url, first, 10)["nll"] != values(made.url, second, 10)["nll"]


def test_a_new_length_is_added_once_and_marked(url: str) -> None:
    ledger, run = Ledger.open(url), Results(url).run(1)

    added = add_later_scores(run, Asked((14, 10)), ledger, url)
    again = add_later_scores(run, Asked((10, 14)), ledger, url)

    assert {(score.length, score.metric) for score in added.scores} == {
        (14, metric) for metric in MEASURES
    }
    assert added.known == {10: 12 * 9}
    assert (again.scores, again.known) == ([], {10: 12 * 9, 14: 12 * 13})
    stored = Results(url).scores(where="id == 1", split="test", metric="accuracy")
    assert [(score.length, score.source) for score in stored] == [
        (6, None),
        (10, None),
        (14, "studies.evaluate"),
    ]


def test_what_is_added_later_is_shown_apart_and_decides_nothing(tmp_path: Path) -> None:
    claim = {
        "name": "one", "claim": "?", "arm": "rope", "against": "table", "panel": "shift",
        "lengths": [10],
    }  # fmt: skip
    panel = {"task": {"name": "shift", "k": 1, "alphabet": 3}}
    made = plan(panels=[{**panel, "evaluation": {"test_lengths": [10]}}], hypotheses=[claim])
    desk = Desk(tmp_path)
    kept = desk.ledger.freeze("tiny", made.frozen, [])
    ids = [run.id for run in desk.do(made)]

    def answered() -> tuple[str, str, str]:
        results = results_of(made, desk.url)
        judged = verdicts(results, frozen_for(made, kept))
        console = Console(file=StringIO(), width=100)
        print_answer(console, results)
        text = console.file.getvalue()  # type: ignore[attr-defined]
        return repr(judged), *text.partition("\n  skill at lengths evaluated later")[::2]

    before = answered()
    # Mixed in, these would say that all arms had learned the longest trained length.
    for number in ids:
        later = {"split": "test", "length": 6, "metric": "skill", "n": 1, "value": 1.0}
        desk.ledger.add_scores(number, [later], source="studies.evaluate")
    after = answered()

    assert after[:2] == before[:2]
    assert "not tested" in before[0]
    assert before[2] == ""
    rows = [line.split() for line in after[2].splitlines()[1:]]
    assert rows == [["length", "6"], ["rope", "1.0±.00"], ["table", "1.0±.00"]]


def test_a_length_beyond_a_table_is_stored_as_not_applicable_with_the_reason(url: str) -> None:
    ledger, run = Ledger.open(url), Results(url).run(3)

    added = add_later_scores(run, Asked((14, 9)), ledger, url)

    assert run.arm == "table"
    assert list(added.refused) == [14]
    [score] = [
        score for score in ledger.scores([3]) if (score.length, score.metric) == (14, "accuracy")
    ]
    assert (score.n, score.value) == (0, None)
    assert score.source is not None
    assert score.source.startswith("studies.evaluate: not applicable: learned has one row per")
    assert values(url, run, 9)["accuracy"][0] == 12 * 8
    assert add_later_scores(run, Asked((14,)), ledger, url).known == {14: 0}


def test_the_number_of_examples_may_be_another(made: Desk) -> None:
    scores, _ = measure(Results(made.url).run(1), Asked((10,), examples=3), made.url)

    assert {score.n for score in scores} == {3, 3 * 9}


def test_a_length_at_which_the_task_asks_nothing_is_refused(messages: Messages, made: Desk) -> None:
    with messages.raises(ConfigError):
        measure(Results(made.url).run(1), Asked((1,)), made.url)
