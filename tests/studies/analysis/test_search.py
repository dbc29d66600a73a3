"""Arms that a study finds itself: each generation follows from the results before it alone."""

from dataclasses import replace

import pytest

from registry import ConfigError
from studies.analysis.results import Arm, StudyResults
from studies.analysis.summaries import best, is_settled, points
from studies.experiment.draft import Draft
from studies.experiment.overrides import gather
from studies.experiment.plan import Cell
from studies.experiment.resolve import resolve
from studies.experiment.search import grow
from studies.head_search import SPACE, STUDY
from tests.studies.made_up import check_draft, score, seed, task


def draft(*assignments: str) -> Draft:
    return Draft(STUDY, gather(STUDY.budgets["smoke"].settings, None, assignments))


def arm(made: Draft, cell: Cell, status: str = "done") -> Arm:
    """Skill grows with heads, cost and size with width."""
    encoder = made.config(cell).encoder
    assert encoder is not None
    measured = [
        score("skill", encoder.n_heads / 16),
        score("step_milliseconds", float(encoder.d_model), split="train"),
    ]
    ended = seed("done" if status == "done" else status, *measured * (status == "done"),
                 lengths=(), parameters=encoder.d_model)  # fmt: skip
    return Arm({0: ended}, 16, name=cell.arm, lengths=(16,))


def results(made: Draft, *instead: Arm) -> StudyResults:
    """What was found, with other arms in place of the first ones."""
    arms = [arm(made, cell) for cell in made.cells()]
    return StudyResults(resolve(made), [task(*instead, *arms[len(instead) :])])


def grown(made: Draft) -> Draft | None:
    """The draft with its next generation."""
    return grow(made, points(results(made)))


def whole(made: Draft) -> Draft:
    """The plan when its search is over."""
    more: Draft | None = made
    while more is not None:
        made, more = more, grown(more)
    return made


def test_a_search_adds_what_it_was_asked_for_and_then_is_over() -> None:
    made = draft()
    done = whole(made)
    assert len(done.arms) == len(made.arms) + 2 * 2
    assert list(done.arms)[: len(made.arms)] == list(made.arms)
    assert done.generation == 2


def test_every_arm_that_is_found_can_be_built_and_is_new() -> None:
    done = whole(draft("study.search.size=9"))
    shapes = [
        (c.encoder.n_heads, c.encoder.d_model, c.encoder.n_layers, c.encoder.feedforward.d_ff)  # type: ignore[union-attr]
        for c in map(done.config, done.cells())
    ]
    assert len(set(shapes)) == len(shapes) == 5 + 18
    assert all(width % heads == 0 for heads, width, _, _ in shapes)
    check_draft(done)


def test_the_next_generation_follows_from_the_stored_results_alone() -> None:
    def proposed(*assignments: str) -> list[str]:
        made = draft(*assignments)
        more = grown(made)
        assert more is not None
        return list(more.arms)

    assert proposed() == proposed()
    assert proposed() != proposed("study.seed=1")


def test_runs_of_a_generation_stay_the_same_runs_in_the_next_one() -> None:
    made = draft()
    more = grown(made)
    assert more is not None

    def identities(one: Draft) -> list[str]:
        return [run.identity for cell in made.cells() for run in resolve(one).confirming(cell, {})]

    assert identities(made) == identities(more)


@pytest.mark.parametrize("status", ["planned", "running"])
def test_a_search_waits_for_runs_that_are_not_over(status: str) -> None:
    made = draft()
    waiting = arm(made, made.cells()[0], status)
    assert not is_settled(results(made, waiting))
    assert not is_settled(results(made, replace(waiting, seeds={})))
    assert is_settled(results(made))


def test_an_arm_that_diverged_is_no_point_and_stops_nothing() -> None:
    made = draft()
    found = results(made, arm(made, made.cells()[0], "diverged"))
    assert len(points(found)) == len(made.arms) - 1
    assert is_settled(found)
    assert grow(made, points(found)) is not None


def test_a_call_for_some_arms_searches_nothing() -> None:
    name = next(iter(draft().arms))
    made = draft(f"study.only=['{name}']")
    assert grown(made) is None


def test_an_exhausted_space_ends_the_search() -> None:
    made = draft(
        "study.search={space: {encoder.n_heads: [1, 2, 4]}, size: 9}",
        "study.arms={a: {encoder.n_heads: 1}}",
        "encoder.d_model=8",
    )
    done = whole(made)
    assert [dict(arm.overlay or {}) for arm in list(done.arms.values())[1:]] in (
        [{"encoder": {"n_heads": 2}}, {"encoder": {"n_heads": 4}}],
        [{"encoder": {"n_heads": 4}}, {"encoder": {"n_heads": 2}}],
    )


def test_the_front_holds_the_values_of_its_arms() -> None:
    made = draft()
    found = best(results(made))
    # Of the five shapes at the start: 8 heads at width 64, 4 at 32, and 2 at 16.
    assert [point.values for point in found] == [
        (8 / 16, 64, 64),
        (4 / 16, 32, 32),
        (2 / 16, 16, 16),
    ]
    assert set(found[0].setting) == set(SPACE)


@pytest.mark.parametrize(
    ("search", "told"),
    [
        ("{space: {encoder.n_head: [1]}}", "a run of this study has no key 'encoder.n_head'"),
        ("{space: {}}", "at least 1"),
        ("{objectives: {skill: largest}}", "'maximize' or 'minimize'"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(search: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        check_draft(draft(f"study.search={search}"))
