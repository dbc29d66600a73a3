"""The figures of a task on which models are trained and scored."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from studies.analysis.results import Arm, Task
from studies.report.findings import Findings
from studies.report.numbers import plain
from studies.report.style import COLUMN, FAINT, INK, PAGE, SHADE, legend, looks, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def length_curves(findings: Findings, task: Task) -> "Figure":
    """Skill and accuracy against length: every seed thin, the mean of the arm thick."""
    figure, (left, right) = new_figure(PAGE, 2.9, columns=2)
    for axes, metric in ((left, "skill"), (right, "accuracy")):
        length_axis(axes, task)
        for name, (colour, dash) in arm_looks(task).items():
            seeds_and_mean(axes, task, task.arm(name), metric, colour, dash)
    left.set_ylabel("skill")
    left.axhline(0, color=FAINT, linewidth=0.8)
    left.axhline(findings.threshold, color=FAINT, linewidth=0.6, linestyle=(0, (2, 3)))
    right.set_ylabel("accuracy")
    lengths = [length for _, length in task.measured]
    floors = [task.blind_guess(length) or 0.0 for length in lengths]
    right.plot(lengths, floors, color=INK, linewidth=0.9, linestyle=":", label="best blind guess")
    right.set_ylim(-0.03, 1.03)
    left.set_ylim(min(-0.13, left.get_ylim()[0]), 1.03)
    legend(figure, right)
    return figure


def arm_looks(task: Task) -> dict[str, tuple[str, Any]]:
    return looks(arm.name for arm in task.arms)


def length_axis(axes: "Axes", task: Task) -> None:
    """A log axis of lengths, on which the trained range is shaded."""
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator, ScalarFormatter

    shortest, longest = task.trained
    axes.set_xscale("log", base=2)
    known = [length for _, length in task.measured]
    low, high = min(known), max(known)
    axes.set_xlim(low / 1.08, high * 1.08)
    if task.has_skill:
        axes.axvspan(max(shortest, low / 1.08), longest, color=SHADE, linewidth=0)
    ticks = [longest] if task.has_skill else [high]
    for length in sorted(known):  # those that do not touch one another
        if all(max(length, tick) / min(length, tick) >= 1.4 for tick in ticks):
            ticks.append(length)
    axes.xaxis.set_major_locator(FixedLocator(sorted(ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("sequence length (shaded: trained)")


def seeds_and_mean(axes: "Axes", task: Task, arm: Arm, metric: str, colour: str, dash: Any) -> None:
    found = [(length, arm.values(metric, length, split)) for split, length in task.measured]
    for number in arm.seeds:
        points = [(length, of_seed[number]) for length, of_seed in found if number in of_seed]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=0.5, alpha=0.35)
    means = [(length, arm.interval(metric, length, split)) for split, length in task.measured]
    known = [(length, found.mean) for length, found in means if found is not None]
    if known:
        x, y = zip(*known, strict=True)
        axes.plot(x, y, color=colour, linestyle=dash, linewidth=1.8, label=arm.name, zorder=3)


def heat_map(findings: Findings, task: Task) -> "Figure":
    """Arms x lengths, coloured by mean skill."""
    import numpy as np

    rows = len(task.arms)
    figure, (axes,) = new_figure(PAGE, 0.75 + 0.27 * rows)
    found = [[arm.interval("skill", length) for length in task.lengths] for arm in task.arms]
    means = np.array([[np.nan if one is None else one.mean for one in row] for row in found])
    axes.imshow(means, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(task.lengths)), [str(length) for length in task.lengths])
    axes.set_yticks(range(rows), [arm.name for arm in task.arms])
    axes.set_xlabel("sequence length")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for (row, column), value in np.ndenumerate(means):
        text = plain(None if np.isnan(value) else float(value))
        ink = INK if np.isnan(value) or value > 0.55 else "white"
        axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=7)
    return figure


def learning_curves(findings: Findings, task: Task) -> "Figure":
    """Training loss against step: every seed thin, the mean of the arm thick."""
    figure, (axes,) = new_figure(COLUMN * 1.35, 2.6)
    for name, (colour, dash) in arm_looks(task).items():
        curves = [
            seed.curves["loss"] for seed in task.arm(name).seeds.values() if "loss" in seed.curves
        ]
        for curve in curves:
            axes.plot(*zip(*curve, strict=True), color=colour, linewidth=0.4, alpha=0.3)
        by_step: dict[int, list[float]] = {}
        for step, value in (point for curve in curves for point in curve):
            by_step.setdefault(step, []).append(value)
        whole = [(s, sum(v) / len(v)) for s, v in sorted(by_step.items()) if len(v) == len(curves)]
        if whole:
            x, y = zip(*whole, strict=True)
            axes.plot(x, y, color=colour, linestyle=dash, linewidth=1.5, label=name)
    axes.set_xlabel("training step")
    axes.set_ylabel("training loss (nats)")
    axes.set_ylim(bottom=0)
    legend(figure, axes)
    return figure


def cost(findings: Findings, task: Task) -> "Figure":
    """Skill at the longest tested length against the CPU seconds of a run, seed by seed."""
    figure, (axes,) = new_figure(COLUMN * 1.35, 2.6)
    longest = max(task.lengths)
    for name, (colour, _) in arm_looks(task).items():
        arm = task.arm(name)
        skills = arm.values("skill", longest)
        points = [
            (run.cpu_seconds, skills[run.seed])
            for run in arm.runs
            if run.seed in skills and run.cpu_seconds
        ]
        if points:
            x, y = zip(*points, strict=True)
            axes.scatter(x, y, s=14, color=colour, alpha=0.75, linewidths=0, label=name)
    axes.axhline(0, color=FAINT, linewidth=0.8)
    axes.set_xlim(left=0)
    axes.set_xlabel("CPU seconds of a run")
    axes.set_ylabel(f"skill at length {longest}")
    legend(figure, axes)
    return figure


COLOUR: Any = "#0072B2"
GRADIENT = re.compile(r"gradient_norm\[(\d+)\]@\d+$")
MOMENTS = 3
"""Gradients are drawn at so many moments of training at most."""


def final_skill(findings: Findings, task: Task) -> "Figure":
    """Skill of every seed, and the step at which it first fitted, an arm a row.

    Final accuracy and learning speed are two answers: an arm may be slow and still get there. A
    seed that did not fit stands hollow where its training ended.
    """
    from matplotlib.ticker import MaxNLocator

    longest = max(task.lengths)
    ends = [step for arm in task.arms for met in (True, False) for step in arm.times(reached=met)]
    timed = bool(ends)
    height = 0.75 + 0.21 * len(task.arms)
    figure, axes = new_figure(PAGE if timed else PAGE * 0.6, height, columns=2 if timed else 1)
    _rows(axes[0], task)
    for row, arm in enumerate(task.arms):
        _dots(axes[0], row, list(arm.values("skill", longest).values()))
    axes[0].axvline(findings.threshold, color=FAINT, linewidth=0.6, linestyle=(0, (2, 3)))
    axes[0].axvline(0, color=FAINT, linewidth=0.8)
    axes[0].set_xlabel(f"skill at length {longest}")
    if timed:
        _rows(axes[1], task)
        axes[1].set_yticklabels([])
        for row, arm in enumerate(task.arms):
            _times(axes[1], row, arm)
        axes[1].set_xlim(0, max(task.steps, *ends) * 1.05)
        axes[1].xaxis.set_major_locator(MaxNLocator(5))
        axes[1].set_xlabel("steps to fit (hollow: ended without)")
    return figure


def _rows(axes: "Axes", task: Task) -> None:
    axes.set_yticks(range(len(task.arms)), [arm.name for arm in task.arms])
    axes.set_ylim(len(task.arms) - 0.4, -0.6)
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
        for steps in arm.times(reached=met):
            look: Any = {"markersize": 4, "alpha": 0.6, "markerfacecolor": face}
            axes.plot([steps], [row], "o", color=COLOUR, **look)


def gradients(findings: Findings, task: Task) -> "Figure":
    """The norm of the gradient of each layer, untrained and during training, one line an arm."""
    import numpy as np
    from matplotlib.ticker import MaxNLocator

    moments = _moments(task)
    figure, columns = new_figure(PAGE, 2.7, columns=len(moments))
    for axes, step in zip(columns, moments, strict=True):
        for name, (colour, dash) in looks(arm.name for arm in task.arms).items():
            arm = next(one for one in task.arms if one.name == name)
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


def has_gradients(task: Task) -> bool:
    """Were gradients of several layers taken?"""
    return any(len(_by_layer(arm, step)) > 1 for step in _moments(task) for arm in task.arms)


def _moments(task: Task) -> list[int]:
    """The first steps at which gradients were taken, and the last one."""
    steps = sorted(
        {
            step
            for seed in task.seeds
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
    for seed in arm.seeds.values():
        for metric, curve in seed.curves.items():
            layer = GRADIENT.match(metric)
            if layer:
                found[int(layer[1]) + 1] += [norm for at, norm in curve if at == step and norm > 0]
    return [(layer, geometric_mean(norms)) for layer, norms in sorted(found.items()) if norms]


COLUMNS = 3


def metrics(findings: Findings, task: Task) -> "Figure":
    """Every metric, one plot each: against length, or arm by arm where there is one length."""
    return _strips(task) if len(task.lengths) == 1 else _curves(task)


def bins(findings: Findings, task: Task) -> "Figure":
    """Every metric that is measured by bin, such as layer by layer, against the bin."""
    figure, grid = _grid(task.binned, 1.9, shared=False)
    for axes, metric in zip(grid, task.binned, strict=True):
        for name, (colour, dash) in arm_looks(task).items():
            curves = [
                points
                for seed in task.arm(name).seeds.values()
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


def _curves(task: Task) -> "Figure":
    """Against length, both axes logarithmic where that is possible."""
    figure, grid = _grid(task.metrics, 1.9, shared=False)
    for axes, metric in zip(grid, task.metrics, strict=True):
        length_axis(axes, task)
        for name, (colour, dash) in arm_looks(task).items():
            seeds_and_mean(axes, task, task.arm(name), metric, colour, dash)
        values = [
            v for arm in task.arms for one in task.lengths for v in arm.values(metric, one).values()
        ]
        if values and min(values) > 0:
            axes.set_yscale("log")
        axes.set_title(metric)
        axes.set_xlabel("length")
    legend(figure, grid[0])
    return figure


def _strips(task: Task) -> "Figure":
    """Arm by arm: every seed a small dot, the mean of the arm a line."""
    [length], arms = task.lengths, task.arms
    figure, grid = _grid(task.metrics, 0.4 + 0.16 * len(arms), shared=True)
    for axes, metric in zip(grid, task.metrics, strict=True):
        for row, (name, (colour, _)) in enumerate(arm_looks(task).items()):
            values = list(task.arm(name).values(metric, length).values())
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
