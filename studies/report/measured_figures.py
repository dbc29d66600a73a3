"""The figures of a panel whose runs are measured in a way of their own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from studies.report.findings import Findings, Panel
from studies.report.palette import FAINT
from studies.report.panel_figures import arm_looks, arm_named, length_axis, seeds_and_mean
from studies.report.style import PAGE, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3


def metrics(findings: Findings, panel: Panel) -> "Figure":
    """Every metric, one plot each: against length, or arm by arm where there is one length."""
    return _strips(panel) if len(panel.lengths) == 1 else _curves(panel)


def bins(findings: Findings, panel: Panel) -> "Figure":
    """Every metric that is measured by bin, such as layer by layer, against the bin."""
    figure, grid = _grid(panel.binned, 1.9, shared=False)
    for axes, metric in zip(grid, panel.binned, strict=True):
        for name, (colour, dash) in arm_looks(panel).items():
            curves = [
                points
                for seed in arm_named(panel, name).seeds
                for (measured, _), points in seed.bins.items()
                if measured == metric
            ]
            by_bin: dict[int, list[float]] = {}
            for curve in curves:
                axes.plot(*zip(*curve, strict=True), color=colour, linewidth=0.4, alpha=0.3)
                for where, value in curve:
                    by_bin.setdefault(where, []).append(value)
            means = [(where, sum(found) / len(found)) for where, found in sorted(by_bin.items())]
            if means:
                x, y = zip(*means, strict=True)
                axes.plot(x, y, ".", color=colour, linestyle=dash, linewidth=1.5, label=name)
        axes.set_xticks(sorted({where for one in axes.get_lines() for where in _x(one)}))
        axes.set_title(metric)
    legend(figure, grid[0])
    return figure


def _x(line: object) -> list[int]:
    return [int(one) for one in line.get_xdata()]  # type: ignore[attr-defined]


def _curves(panel: Panel) -> "Figure":
    """Against length, both axes logarithmic where that is possible."""
    figure, grid = _grid(panel.metrics, 1.9, shared=False)
    for axes, metric in zip(grid, panel.metrics, strict=True):
        length_axis(axes, panel)
        for name, (colour, dash) in arm_looks(panel).items():
            seeds_and_mean(axes, panel, arm_named(panel, name), metric, colour, dash)
        values = [
            v
            for arm in panel.arms
            for one in panel.lengths
            for v in arm.values(metric, one).values()
        ]
        if values and min(values) > 0:
            axes.set_yscale("log")
        axes.set_title(metric)
        axes.set_xlabel("length")
    legend(figure, grid[0])
    return figure


def _strips(panel: Panel) -> "Figure":
    """Arm by arm: every seed a small dot, the mean of the arm a line."""
    [length], arms = panel.lengths, panel.arms
    figure, grid = _grid(panel.metrics, 0.4 + 0.16 * len(arms), shared=True)
    for axes, metric in zip(grid, panel.metrics, strict=True):
        for row, (name, (colour, _)) in enumerate(arm_looks(panel).items()):
            values = list(arm_named(panel, name).values(metric, length).values())
            if values:
                mean = sum(values) / len(values)
                axes.plot(values, [row] * len(values), "o", color=colour, markersize=2.5, alpha=0.5)
                axes.plot([mean, mean], [row - 0.32, row + 0.32], color=colour, linewidth=1.6)
        axes.set_title(metric)
        axes.grid(axis="y", color=FAINT, linewidth=0.3, alpha=0.5)
        axes.margins(x=0.08)
    grid[0].set_yticks(range(len(arms)), [arm.name for arm in arms])
    grid[0].set_ylim(len(arms) - 0.5, -0.5)
    return figure


def _grid(metrics: Sequence[str], height: float, *, shared: bool) -> tuple["Figure", list["Axes"]]:
    """One plot for each metric, `height` inches high; `shared` have one axis of arms."""
    from matplotlib.figure import Figure

    rows = -(-len(metrics) // COLUMNS)
    figure = Figure(figsize=(PAGE, 0.6 + height * rows), layout="constrained")
    grid = list(figure.subplots(rows, COLUMNS, squeeze=False, sharey=shared).flat)
    for axes in grid[len(metrics) :]:
        axes.remove()
    return figure, grid[: len(metrics)]
