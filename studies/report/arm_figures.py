"""Figures of a panel that compare arms at one length: final skill and speed, gradients by layer."""

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from studies.report.findings import Arm, Findings, Panel
from studies.report.palette import FAINT, looks
from studies.report.style import PAGE, legend, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR: Any = "#0072B2"
GRADIENT = re.compile(r"gradient_norm\[(\d+)\]@\d+$")
MOMENTS = 3
"""Gradients are drawn at so many moments of training at most."""


def final_skill(findings: Findings, panel: Panel) -> "Figure":
    """Skill of every seed, and the step at which it first fitted, an arm a row.

    Final accuracy and learning speed are two answers: an arm may be slow and still get there. A
    seed that did not fit stands hollow where its training ended.
    """
    from matplotlib.ticker import MaxNLocator

    longest = max(panel.lengths)
    ends = [step for arm in panel.arms for met in (True, False) for step in arm.fits(met)]
    timed = bool(ends)
    height = 0.75 + 0.21 * len(panel.arms)
    figure, axes = new_figure(PAGE if timed else PAGE * 0.6, height, columns=2 if timed else 1)
    _rows(axes[0], panel)
    for row, arm in enumerate(panel.arms):
        _dots(axes[0], row, list(arm.values("skill", longest).values()))
    axes[0].axvline(findings.threshold, color=FAINT, linewidth=0.6, linestyle=(0, (2, 3)))
    axes[0].axvline(0, color=FAINT, linewidth=0.8)
    axes[0].set_xlabel(f"skill at length {longest}")
    if timed:
        _rows(axes[1], panel)
        axes[1].set_yticklabels([])
        for row, arm in enumerate(panel.arms):
            _times(axes[1], row, arm)
        axes[1].set_xlim(0, max(panel.steps, *ends) * 1.05)
        axes[1].xaxis.set_major_locator(MaxNLocator(5))
        axes[1].set_xlabel("steps to fit (hollow: ended without)")
    return figure


def _rows(axes: "Axes", panel: Panel) -> None:
    axes.set_yticks(range(len(panel.arms)), [arm.name for arm in panel.arms])
    axes.set_ylim(len(panel.arms) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.5)


def _dots(axes: "Axes", row: int, values: list[float]) -> None:
    """One dot a seed, and a bar at their mean."""
    if not values:
        return
    for value in values:
        axes.plot([value], [row], "o", markersize=4, color=COLOUR, alpha=0.6)
    mean = sum(values) / len(values)
    axes.plot([mean, mean], [row - 0.3, row + 0.3], color=COLOUR, linewidth=1.8)


def _times(axes: "Axes", row: int, arm: Arm) -> None:
    """One dot a seed: filled where it met the criterion, hollow where it ended without."""
    for met in (True, False):
        face = COLOUR if met else "white"
        for steps in arm.fits(met):
            look: Any = {"markersize": 4, "alpha": 0.6, "markerfacecolor": face}
            axes.plot([steps], [row], "o", color=COLOUR, **look)


def gradients(findings: Findings, panel: Panel) -> "Figure":
    """The norm of the gradient of each layer, untrained and during training, one line an arm."""
    import numpy as np
    from matplotlib.ticker import MaxNLocator

    moments = _moments(panel)
    figure, columns = new_figure(PAGE, 2.7, columns=len(moments))
    for axes, step in zip(columns, moments, strict=True):
        for name, (colour, dash) in looks(arm.name for arm in panel.arms).items():
            arm = next(one for one in panel.arms if one.name == name)
            points = _by_layer(arm, step)
            if points:
                x, y = zip(*points, strict=True)
                axes.plot(x, y, color=colour, linestyle=dash, linewidth=1.4, label=name)
        drawn = [y for line in axes.lines for y in np.asarray(line.get_ydata())]
        if drawn and max(drawn) > 5 * min(drawn):
            axes.set_yscale("log")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title("untrained" if step == 0 else f"after step {step}")
        axes.set_xlabel("layer")
    columns[0].set_ylabel("gradient norm")
    legend(figure, columns[0])
    return figure


def has_gradients(panel: Panel) -> bool:
    """Were gradients of several layers taken?"""
    return any(len(_by_layer(arm, step)) > 1 for step in _moments(panel) for arm in panel.arms)


def _moments(panel: Panel) -> list[int]:
    """The first steps at which gradients were taken, and the last one."""
    steps = sorted(
        {
            step
            for arm in panel.arms
            for seed in arm.seeds
            for metric, curve in seed.curves.items()
            if GRADIENT.match(metric)
            for step, _ in curve
        }
    )
    return [*steps[: MOMENTS - 1], steps[-1]] if len(steps) > MOMENTS else steps


def _by_layer(arm: Arm, step: int) -> list[tuple[int, float]]:
    """The geometric mean over seeds for each layer, counted from 1; layers without any are left."""
    from statistics import geometric_mean

    found: dict[int, list[float]] = defaultdict(list)
    for seed in arm.seeds:
        for metric, curve in seed.curves.items():
            layer = GRADIENT.match(metric)
            if layer:
                found[int(layer[1]) + 1] += [norm for at, norm in curve if at == step and norm > 0]
    return [(layer, geometric_mean(norms)) for layer, norms in sorted(found.items()) if norms]
