"""The figures of a report, drawn from its findings."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from studies.analysis.results import Task
from studies.analysis.sentences import is_time
from studies.report.findings import Findings, Front
from studies.report.panel_figures import (
    bins,
    cost,
    final_skill,
    gradients,
    has_gradients,
    heat_map,
    learning_curves,
    length_curves,
    metrics,
)
from studies.report.style import COLOUR_OF, FAINT, PAGE, SHADE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from studies.statistics import Verdict


def figures(findings: Findings) -> dict[str, Callable[[], "Figure"]]:
    """Every figure that the findings have numbers for, by its file name."""
    drawn: dict[str, Callable[[], Figure]] = {}
    if any(one.effect is not None for one in findings.verdicts):
        drawn["contrasts"] = lambda: contrasts(findings)
    shown = findings.front
    if shown is not None and shown.best and len(shown.objectives) > 1:
        drawn["front"] = lambda: pareto_front(shown)
    for number, task in enumerate(findings.tasks, start=1):
        drawn |= {
            f"panel{number}_{name}": lambda draw=draw, task=task: draw(findings, task)
            for name, draw in _of_task(task).items()
            if any(seed.places for seed in task.seeds) and (name != "bins" or task.binned)
        }
    return drawn


def _of_task(task: Task) -> dict[str, "Callable[[Findings, Task], Figure]"]:
    """What is drawn of a task: against length, where there are several."""
    if not task.has_skill:
        return MEASURED
    drawn = TRAINED if len(task.lengths) > 1 else AT_ONE_LENGTH
    return drawn | ({"gradients": gradients} if has_gradients(task) else {})


def contrasts(findings: Findings) -> "Figure":
    """Effects with their simultaneous intervals, against the smallest effect of interest.

    Steps and shares have no scale in common: where both are there, all are drawn in units of δ.
    """
    shown = [(one, one.effect) for one in findings.verdicts if one.effect is not None]
    mixed = len({is_time(one.hypothesis) for one, _ in shown}) > 1
    figure, (axes,) = new_figure(PAGE, 0.9 + 0.34 * max(1, len(shown)))
    for row, (verdict, effect) in enumerate(shown):
        delta = verdict.hypothesis.smallest_effect
        unit = delta if mixed else 1.0
        axes.add_patch(_band(row, delta / unit))
        bounds = [effect if one is None else one for one in (verdict.low, verdict.high)]
        low, high = (one / unit for one in bounds)
        colour = COLOUR_OF[verdict.status]
        axes.plot([low, high], [row, row], color=colour, linewidth=1.6, solid_capstyle="butt")
        axes.plot([effect / unit], [row], "o", color=colour, markersize=5)
    axes.axvline(0, color=FAINT, linewidth=0.8)
    axes.set_yticks(range(len(shown)), [one.hypothesis.name for one, _ in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    what = "effect in units of δ" if mixed else "effect"
    axes.set_xlabel(f"{what} (shaded: smaller than of interest)")
    return figure


def _band(row: int, delta: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((-delta, row - 0.32), 2 * delta, 0.64, color=SHADE, linewidth=0)


MEASURED: dict[str, Callable[[Findings, Task], "Figure"]] = {"metrics": metrics, "bins": bins}
"""What is drawn of a task whose runs are measured in a way of their own."""

TRAINED: dict[str, Callable[[Findings, Task], "Figure"]] = {
    "lengths": length_curves,
    "heat_map": heat_map,
    "learning": learning_curves,
    "cost": cost,
}

AT_ONE_LENGTH: dict[str, Callable[[Findings, Task], "Figure"]] = {
    "final": final_skill,
    "learning": learning_curves,
    "cost": cost,
}


LINEAR = 2.0
"""Up to here the axis is linear, beyond it logarithmic."""
TICKS = (1, 2, 5, 10, 20, 50, 100, 1000)


def effects(verdicts: Sequence["Verdict"]) -> "Figure | None":
    """Each effect with its interval, divided by the smallest effect of interest.

    Claims about skill, steps and slopes share no unit; in units of δ the band of effects that do
    not matter is the same for all of them. None where no effect was measured.
    """
    shown = [(one, one.effect) for one in verdicts if one.effect is not None]
    if not shown:
        return None
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    figure, (axes,) = new_figure(PAGE, 0.75 + 0.27 * len(shown))
    axes.axvspan(-1, 1, color=SHADE, linewidth=0)
    axes.axvline(0, color=FAINT, linewidth=0.8)
    for row, (verdict, effect) in enumerate(shown):
        delta = verdict.hypothesis.smallest_effect
        low = effect if verdict.low is None else verdict.low
        high = effect if verdict.high is None else verdict.high
        colour = COLOUR_OF[verdict.status]
        axes.plot([low / delta, high / delta], [row, row], color=colour, linewidth=1.6)
        face = "white" if verdict.exploratory else colour
        axes.plot([effect / delta], [row], "o", color=colour, markersize=5, markerfacecolor=face)
    axes.set_xscale("symlog", linthresh=LINEAR)
    axes.margins(x=0.06)
    axes.xaxis.set_major_locator(FixedLocator([*(-one for one in TICKS), 0, *TICKS]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(shown)), [one.hypothesis.name for one, _ in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("effect / δ (shaded: smaller than of interest; hollow: exploratory)")
    return figure


SMALL, LARGE = 14.0, 150.0
"""Areas of the smallest and the largest dot, in square points."""


def pareto_front(front: Front) -> "Figure":
    """The first objective against the second, every arm a dot; a third one is the dot's area.

    Filled dots are on the front, numbered as in its table. With more than two objectives a dot of
    the front may lie inside: it is better in what is not an axis.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    names = list(front.objectives)
    figure, (axes,) = new_figure(PAGE, 3.4)
    kept = {point.arm: number for number, point in enumerate(front.best, start=1)}
    sizes = [point.values[2] for point in front.points] if len(names) > 2 else []
    for point in front.points:
        area = _area(point.values[2], sizes) if sizes else 4 * SMALL
        y, x = point.values[:2]
        inside = point.arm not in kept
        axes.scatter(
            [x], [y], s=area, color="none" if inside else "#0072B2",
            edgecolors=FAINT if inside else "#0072B2", linewidths=0.8, alpha=0.75,
        )  # fmt: skip
        if not inside:
            offset = (3 + area**0.5 / 2, 3)
            axes.annotate(
                str(kept[point.arm]), (x, y), offset, textcoords="offset points", fontsize=7
            )
    if min(point.values[1] for point in front.points) > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    third = f" (area: {names[2].replace('_', ' ')})" if sizes else ""
    axes.set_ylabel(names[0].replace("_", " "))
    axes.set_xlabel(names[1].replace("_", " ") + third)
    return figure


def _area(value: float, sizes: list[float]) -> float:
    """Areas grow linearly from the smallest to the largest value."""
    low, high = min(sizes), max(sizes)
    return SMALL + (LARGE - SMALL) * ((value - low) / (high - low) if high > low else 0.5)
