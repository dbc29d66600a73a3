"""Figures of arms at one length, from values whose places are known."""

from typing import Any

import pytest

from studies.report.arm_figures import final_skill, gradients, has_gradients
from studies.report.figures import figures
from studies.report.findings import Arm, Findings, Front, Panel, Seed
from studies.report.page import html_page
from studies.searching import Point
from studies.tasks.task import Floors
from tests.studies.report.synthetic import findings, run


def seed(arm: str, number: int, skill: float, steps: float) -> Seed:
    values = {("test", "skill", 16): skill, ("train", "steps_to_fit", 16): steps}
    norms = {
        f"gradient_norm[{layer}]@16": [(0, 2.0**layer), (50, 3.0), (90, 4.0), (100, 5.0)]
        for layer in (0, 1)
    }
    return Seed(run(arm, number), values, {"loss": [(100, 0.5)], **norms})


def places(line: Any) -> tuple[list[float], list[float]]:
    """Where the points of a line are."""
    return list(line.get_xdata()), list(line.get_ydata())


def panel(*arms: Arm) -> Panel:
    floors = {16: Floors(constant=0.1, index=0.2, bag=0.15)}
    return Panel("shift", "shift(k=3)", (16, 16), 100, [16], floors, list(arms))


ARMS = [
    Arm("pre", [seed("pre", 0, 1.0, 40.0), seed("pre", 1, 0.9, 60.0)]),
    Arm("post", [seed("post", 0, 0.2, 100.0)]),
]
TOLD: Findings = findings(panel(*ARMS))


def test_a_seed_that_never_fitted_stands_hollow_at_the_end() -> None:
    figure = final_skill(TOLD, panel(*ARMS))
    dots = [
        (places(line)[0][0], places(line)[1][0], line.get_markerfacecolor())
        for line in figure.axes[1].lines
        if line.get_marker() == "o"
    ]
    assert [(x, y) for x, y, _ in dots] == [(40, 0), (60, 0), (100, 1)]
    assert [face == "white" for _, _, face in dots] == [False, False, True]


def test_the_bar_of_an_arm_is_at_its_mean() -> None:
    figure = final_skill(TOLD, panel(*ARMS))
    bars = [places(line)[0][0] for line in figure.axes[0].lines if len(places(line)[0]) == 2]
    assert bars[:2] == pytest.approx([0.95, 0.2])


def test_gradients_are_drawn_by_layer_untrained_and_at_the_end() -> None:
    assert has_gradients(panel(*ARMS))
    figure = gradients(TOLD, panel(*ARMS))
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
    page, _ = html_page(findings(panel(*ARMS), front=Front(aims, points, points[:2])))
    assert "2 of 3 arms are not beaten" in page
    assert "step_milliseconds (minimized)" in page
    assert "40,000" in page
    assert "figure-front" in page
