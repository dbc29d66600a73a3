"""How tuning leads to confirming, without workers: runs are ended by hand."""

import inspect
import platform
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from store import Results
from store.ledger import Ledger
from store.records import Choice
from store.source_code import hash_of_file
from studies.analysis.gather import StoredRuns
from studies.execution.scheduler import Scheduler
from studies.execution.trials import RATE, Trials
from studies.experiment.draft import Draft
from studies.experiment.overrides import gather
from studies.experiment.resolve import resolve
from studies.extrapolation import QUICK, STUDY
from studies.tasks.shift import Shift
from studies.training import identity

RATES = [0.001, 0.003, 0.01]
BRIEF = ["study.arms=[none]", "task=shift", "study.seeds=2"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'sandbox.db'}"


def scheduler(url: str, *assignments: str) -> Scheduler:
    brief = [*BRIEF, *assignments]
    plan = resolve(Draft(STUDY, gather(QUICK, None, brief)))
    return Scheduler(plan, Ledger.create(url), Trials(url))


def changed_since(url: str) -> dict[str, list[int]]:
    """The stored runs of each arm whose source is another one now."""
    plan = resolve(Draft(STUDY, gather(QUICK, None, BRIEF)))
    with closing(Results(url)) as results:
        return StoredRuns(plan, results).changed()


def end(made: Scheduler, nlls: dict[float, float | str], name: str = "w") -> None:
    """End the planned tuning runs: with a validation nll, or with a status."""
    [numbers] = made.tuning.values()
    while claim := made.ledger.claim(name, numbers):
        found = nlls[claim.run.config["training"]["learning_rate"]]
        if isinstance(found, str):
            made.ledger.finish(claim, found, reason="made up")
            continue
        scores = [
            {"split": "validation", "length": 4, "metric": "nll", "n": 1, "value": found - 0.3},
            {"split": "validation", "length": 8, "metric": "nll", "n": 3, "value": found + 0.1},
            {"split": "test", "length": 64, "metric": "nll", "n": 9, "value": -found},
        ]
        made.ledger.finish(claim, "done", scores=scores)


def chosen(made: Scheduler) -> Choice:
    made.advance()
    with closing(Results(made.trials.url)) as results:
        found = results.choices(made.plan.study)[-1]
    assert [*made.chosen.values()] == [found.setting]
    return found


def test_nothing_is_confirmed_before_tuning_is_over(url: str) -> None:
    made = scheduler(url)

    made.advance()

    assert (made.chosen, made.confirming) == ({}, {})
    assert made.expected() == 3 + 2


def test_runs_that_end_between_two_looks_at_them_are_still_followed_by_confirming(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = scheduler(url)
    look = made.ledger.statuses

    def last_look_before_they_end(numbers: Sequence[int]) -> dict[int, str]:
        seen = look(numbers)
        end(made, dict.fromkeys(RATES, 0.5))
        return seen

    monkeypatch.setattr(made.ledger, "statuses", last_look_before_they_end)

    assert made.unfinished()
    assert made.unfinished()
    [confirming] = made.confirming.values()
    assert len(confirming) == 2


def test_the_lowest_validation_nll_is_chosen_and_test_lengths_have_no_say(url: str) -> None:
    made = scheduler(url)
    end(made, dict(zip(RATES, (0.5, 0.2, 0.9), strict=True)))

    found = chosen(made)
    assert (found.setting, found.edges) == ({RATE: 0.003}, {})
    runs = made.ledger.runs(made.ids())[3:]
    assert [(run.phase, run.seed) for run in runs] == [("confirm", 0), ("confirm", 1)]
    assert {run.config["training"]["learning_rate"] for run in runs} == {0.003}


@pytest.mark.parametrize(
    ("best", "rate", "side"),
    [((0.1, 0.2, 0.9), 0.001, "lowest"), ((0.9, 0.2, 0.1), 0.01, "highest")],
)
def test_an_optimum_at_the_edge_of_the_list_is_flagged(
    url: str, best: tuple[float, ...], rate: float, side: str
) -> None:
    made = scheduler(url)
    end(made, dict(zip(RATES, best, strict=True)))

    found = chosen(made)
    assert (found.setting, found.edges) == ({RATE: rate}, {RATE: side})


def test_a_rate_that_diverged_is_passed_over(url: str) -> None:
    made = scheduler(url)
    end(made, dict(zip(RATES, (0.5, 0.2, "diverged"), strict=True)))

    found = chosen(made)
    assert (found.setting, found.edges) == ({RATE: 0.003}, {})


def test_an_arm_that_diverges_everywhere_has_no_confirming_runs(url: str) -> None:
    made = scheduler(url)
    end(made, dict.fromkeys(RATES, "diverged"))

    assert chosen(made).reason == "training diverged at every setting"
    assert (made.confirming, made.unfinished(), made.expected()) == ({}, False, 3)


def test_an_arm_with_a_failed_tuning_run_is_not_confirmed_until_it_is_mended(url: str) -> None:
    made = scheduler(url)
    end(made, dict(zip(RATES, (0.5, 0.2, "failed"), strict=True)))
    assert chosen(made).reason == "1 of 3 tuning runs failed"

    again = scheduler(url)
    again.recover()
    assert again.chosen == {}
    end(again, {0.01: 0.1})

    found = chosen(again)
    assert (found.setting, found.edges) == ({RATE: 0.01}, {RATE: "highest"})


def test_rates_are_judged_by_their_mean_over_tuning_seeds(url: str) -> None:
    made = scheduler(url, "study.tuning_seeds=2", "study.learning_rates=[0.001, 0.003]")
    [numbers] = made.tuning.values()
    nlls = {(0.001, 1000): 0.1, (0.001, 1001): 0.9, (0.003, 1000): 0.4, (0.003, 1001): 0.4}
    while claim := made.ledger.claim("w", numbers):
        value = nlls[claim.run.config["training"]["learning_rate"], claim.run.seed]
        score = {"split": "validation", "length": 4, "metric": "nll", "n": 5, "value": value}
        made.ledger.finish(claim, "done", scores=[score])

    assert chosen(made).setting == {RATE: 0.003}


def test_a_run_of_a_dead_worker_is_planned_again(url: str) -> None:
    made = scheduler(url)
    [numbers] = made.tuning.values()
    claim = made.ledger.claim("elsewhere/1/2", numbers)
    assert claim is not None
    this_machine = platform.node()
    dead = made.ledger.claim(f"{this_machine}/999999999/0", numbers)
    assert dead is not None

    scheduler(url).recover()

    statuses = made.ledger.statuses(numbers)
    assert statuses[claim.run.id] == "running"
    assert statuses[dead.run.id] == "planned"


def test_runs_of_a_part_whose_source_has_changed_are_named(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = scheduler(url)
    assert changed_since(url) == {}

    monkeypatch.setattr(
        "studies.training.identity.hash_of_file", lambda file: f"another {file.stem}"
    )

    assert changed_since(url) == {"none": made.ids()}


def test_a_run_carries_the_source_of_each_of_its_parts(url: str) -> None:
    made = scheduler(url)
    [first, *_] = made.ledger.runs(made.ids())
    results = Results(url)

    parts = results.components(first.code_hash or "")

    kinds = {"position", "task", "norm", "feedforward", "mask", "skeleton", "training"}
    assert {part.kind for part in parts} >= kinds
    assert [part.origin for part in parts if part.kind == "task"] == ["studies.tasks.shift:Shift"]
    [shift] = [part.source_hash for part in parts if part.kind == "task"]
    assert shift == hash_of_file(Path(inspect.getfile(Shift)))


def test_the_skeleton_and_the_training_loop_are_compared_where_they_were_noted(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = scheduler(url)
    monkeypatch.setattr(
        identity,
        "hash_of_file",
        lambda file: "another" if file.stem == "block" else hash_of_file(file),
    )
    assert changed_since(url) == {"none": made.ids()}

    file = url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM es_components WHERE kind IN ('skeleton', 'training')")

    assert changed_since(url) == {}


def test_what_runs_again_carries_the_source_of_now(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses: dict[float, float | str] = {0.001: 0.5, 0.003: 0.2, 0.01: 0.9}
    made = scheduler(url)
    end(made, losses)
    made.advance()
    [numbers] = made.confirming.values()
    while claim := made.ledger.claim("w", numbers):
        made.ledger.finish(claim, "done")
    monkeypatch.setattr(
        "studies.training.identity.hash_of_file", lambda file: f"another {file.stem}"
    )
    assert set(changed_since(url)["none"]) == set(made.ids())

    again = scheduler(url)
    again.recover(rerun=["none"])
    end(again, losses)
    again.advance()

    assert set(again.ids()) == set(made.ids())
    assert changed_since(url) == {}


def test_runs_that_the_last_call_did_not_ask_for_are_superseded(url: str) -> None:
    losses: dict[float, float | str] = {0.001: 0.5, 0.003: 0.2, 0.01: 0.9}
    first = scheduler(url)
    end(first, losses)
    first.advance()
    longer = scheduler(url, "training.steps=700")
    end(longer, losses)
    longer.advance()
    results = Results(url)

    def current() -> set[int]:
        return {run.id for run in results.runs(phase="all", current=True)}

    assert set(longer.ids()).isdisjoint(first.ids())
    assert current() == set(longer.ids())

    scheduler(url).recover()

    assert current() == set(first.ids())


def test_steps_left_are_those_of_runs_still_to_be_done(url: str) -> None:
    made = scheduler(url)
    steps = made.plan[made.plan.cells()[0]].steps
    assert list(made.unfinished_steps(made.advance())) == [steps] * (3 + 2)

    end(made, {1e-3: 0.5, 3e-3: 0.4, 1e-2: 0.6})
    assert list(made.unfinished_steps(made.advance())) == [steps] * 2

    [numbers] = made.confirming.values()
    claim = made.ledger.claim("w", numbers)
    assert claim is not None
    made.ledger.finish(claim, "done")
    again = scheduler(url)
    assert list(again.unfinished_steps(again.advance())) == [steps]


def test_an_arm_that_diverges_everywhere_leaves_no_steps(url: str) -> None:
    made = scheduler(url)
    end(made, dict.fromkeys((1e-3, 3e-3, 1e-2), "diverged"))

    assert list(made.unfinished_steps(made.advance())) == []
