"""Figures of arms at one length, from values whose places are known."""

from typing import Any

import pytest

from studies.analysis.results import Arm, Seed
from studies.analysis.summaries import Point
from studies.report.figures import figures, final_skill, gradients, has_gradients
from studies.report.findings import Findings, Front
from studies.report.numbers import read_numbers
from studies.report.page import html_page, markdown_page
from tests.studies.made_up import findings, score, seed, task


def fitted(number: int, skill: float, steps: float, met: bool = True) -> Seed:
    norms = {
        f"gradient_norm[{layer}]@16": [(0, 2.0**layer), (50, 3.0), (90, 4.0), (100, 5.0)]
        for layer in (0, 1)
    }
    time = score("steps_to_fit", steps, split="train", correct=int(met))
    return seed({16: skill}, time, seed=number, curves={"loss": [(100, 0.5)], **norms})


def timed(name: str, *times: tuple[float, float, bool], lengths: tuple[int, ...] = (16,)) -> Arm:
    """An arm from the skill of each seed, its steps, and whether it fitted by then."""
    seeds = {number: fitted(number, *one) for number, one in enumerate(times)}
    return Arm(seeds, 16, name=name, lengths=lengths)


def places(line: Any) -> tuple[list[float], list[float]]:
    """Where the points of a line are."""
    return list(line.get_xdata()), list(line.get_ydata())


ARMS = [
    timed("pre", (1.0, 40.0, True), (0.9, 60.0, True)),
    timed("post", (0.2, 100.0, False)),
]
TOLD: Findings = findings(task(*ARMS))


def test_a_seed_that_never_fitted_stands_hollow_at_the_end() -> None:
    figure = final_skill(TOLD, task(*ARMS))
    dots = [
        (places(line)[0][0], places(line)[1][0], line.get_markerfacecolor())
        for line in figure.axes[1].lines
        if line.get_marker() == "o"
    ]
    assert [(x, y) for x, y, _ in dots] == [(40, 0), (60, 0), (100, 1)]
    assert [face == "white" for _, _, face in dots] == [False, False, True]


def test_a_seed_that_fitted_after_the_planned_steps_is_filled_and_seen() -> None:
    late = task(timed("late", (0.9, 250.0, True)), ARMS[0], steps=100)
    axes = final_skill(findings(late), late).axes[1]
    dot = next(line for line in axes.lines if line.get_marker() == "o")
    assert dot.get_markerfacecolor() != "white"
    assert places(dot)[0] == [250.0]
    assert axes.get_xlim()[1] > 250


def test_the_bar_of_an_arm_is_at_its_mean() -> None:
    figure = final_skill(TOLD, task(*ARMS))
    bars = [places(line)[0][0] for line in figure.axes[0].lines if len(places(line)[0]) == 2]
    assert bars[:2] == pytest.approx([0.95, 0.2])


def test_gradients_are_drawn_by_layer_untrained_and_at_the_end() -> None:
    assert has_gradients(task(*ARMS))
    figure = gradients(TOLD, task(*ARMS))
    assert [axes.get_title() for axes in figure.axes] == [
        "untrained",
        "after step 50",
        "after step 100",
    ]
    x, y = places(figure.axes[0].lines[0])
    assert x == [1, 2]
    assert y == pytest.approx([1.0, 2.0])


def test_one_length_has_its_own_figures() -> None:
    names = set(figures(TOLD))
    assert names == {f"panel1_{one}" for one in ("final", "learning", "cost", "gradients")}


def test_a_front_is_drawn_and_told_with_its_values() -> None:
    points = [Point("wide", {}, (0.9, 12.0, 40_000.0)), Point("thin", {}, (0.4, 3.0, 5_000.0)),
              Point("beaten", {}, (0.3, 4.0, 6_000.0))]  # fmt: skip
    aims = {"skill": "maximize", "step_milliseconds": "minimize", "parameters": "minimize"}
    page, _ = html_page(findings(task(*ARMS), front=Front(aims, points, points[:2])))
    assert "2 of 3 arms are not beaten" in page
    assert "step_milliseconds (minimized)" in page
    assert "40,000" in page
    assert "figure-front" in page


def test_steps_to_fit_have_a_table_however_many_lengths_are_tested() -> None:
    pre = timed("pre", *((1.0, steps, True) for steps in (40.0, 70.0, 60.0)))
    post = timed("post", (0.2, 300.0, False), (0.9, 90.0, True), lengths=(16, 32))
    told = findings(task(pre, post, fit="steps until it fits"))

    numbers = read_numbers(html_page(told)[0])
    lines = markdown_page(told, {}).splitlines()

    shown = {key: text for key, (_, text) in numbers.items() if "/fit/" in key}
    assert shown == {
        "panel1/pre/fit/met": "3", "panel1/pre/fit/seeds": "3", "panel1/pre/fit/fewest": "40",
        "panel1/pre/fit/median": "60", "panel1/pre/fit/most": "70",
        "panel1/post/fit/met": "1", "panel1/post/fit/seeds": "2", "panel1/post/fit/fewest": "90",
        "panel1/post/fit/median": "90", "panel1/post/fit/most": "90",
        "panel1/post/fit/others": "300",
    }  # fmt: skip
    assert "**Steps until it fits**" in lines
    assert "| pre | 3 of 3 | 40 | 70 | 60 | – |" in lines
    assert "| post | 1 of 2 | 90 | 90 | 90 | 300 |" in lines
    assert "steps until" not in html_page(TOLD)[0].lower()


def test_the_markdown_has_no_surplus_blank_lines() -> None:
    text = markdown_page(TOLD, {})

    assert "\n\n\n" not in text
    assert text == text.strip() + "\n"
