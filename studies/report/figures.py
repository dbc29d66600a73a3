"""The figures of a report, drawn from its findings."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from studies.analysis.results import Arm, Curve, Task
from studies.analysis.sentences import is_time
from studies.report.findings import Findings, Front
from studies.report.numbers import plain
from studies.report.style import (
    COLOUR_OF,
    COLUMN,
    FAINT,
    INK,
    PAGE,
    SHADE,
    legend,
    looks,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from studies.analysis.verdicts import Verdict

COLOUR: Any = "#0072B2"
"""The colour where places alone tell apart."""


def figures(findings: Findings) -> dict[str, Callable[[], "Figure"]]:
    """Return how to draw each figure that the findings have numbers for, by file name."""
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
    """Return the figures of a task: against length, where there are several."""
    if not task.has_skill:
        return {"metrics": metrics, "bins": bins}
    final = {"final": final_skill}
    drawn = final if len(task.lengths) == 1 else {"lengths": length_curves, "heat_map": heat_map}
    by_layer = {"gradients": gradients} if has_gradients(task) else {}
    return {**drawn, "learning": learning_curves, "cost": cost, **by_layer}


# What was found about claims, and by a search -----------------------------------------------


def contrasts(findings: Findings) -> "Figure":
    """Effects with their simultaneous intervals, against the smallest effect of interest.

    Steps and shares have no scale in common: where both are there, all are drawn in units of δ.
    """
    from matplotlib.patches import Rectangle

    shown = [one for one in findings.verdicts if one.effect is not None]
    mixed = len({is_time(one.hypothesis) for one in shown}) > 1
    figure, (axes,) = new_figure(PAGE, 0.9 + 0.34 * max(1, len(shown)))
    for row, delta in enumerate(1.0 if mixed else one.hypothesis.smallest_effect for one in shown):
        band = Rectangle((-delta, row - 0.32), 2 * delta, 0.64, color=SHADE, linewidth=0)
        axes.add_patch(band)
    _draw_effects(axes, shown, in_deltas=mixed)
    what = "effect in units of δ" if mixed else "effect"
    axes.set_xlabel(f"{what} (shaded: smaller than of interest)")
    return figure


LINEAR = 2.0
"""Up to here the axis is linear, beyond it logarithmic."""
TICKS = (1, 2, 5, 10, 20, 50, 100, 1000)


def effects(verdicts: Sequence["Verdict"]) -> "Figure | None":
    """Each effect with its interval, divided by the smallest effect of interest.

    Claims about skill, steps and slopes share no unit; in units of δ the band of effects that do
    not matter is the same for all of them. None where no effect was measured.
    """
    shown = [one for one in verdicts if one.effect is not None]
    if not shown:
        return None
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    figure, (axes,) = new_figure(PAGE, 0.75 + 0.27 * len(shown))
    axes.axvspan(-1, 1, color=SHADE, linewidth=0)
    _draw_effects(axes, shown, in_deltas=True, hollow=True)
    axes.set_xscale("symlog", linthresh=LINEAR)
    axes.margins(x=0.06)
    axes.xaxis.set_major_locator(FixedLocator([*(-one for one in TICKS), 0, *TICKS]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("effect / δ (shaded: smaller than of interest; hollow: exploratory)")
    return figure


def _draw_effects(
    axes: "Axes", verdicts: Sequence["Verdict"], *, in_deltas: bool, hollow: bool = False
) -> None:
    """Draw a row for each verdict: effect (`hollow` if exploratory) and interval."""
    axes.axvline(0, color=FAINT, linewidth=0.8)
    for row, one in enumerate(verdicts):
        unit, effect = one.hypothesis.smallest_effect if in_deltas else 1.0, one.effect or 0.0
        ends = [(effect if bound is None else bound) / unit for bound in (one.low, one.high)]
        colour = COLOUR_OF[one.status]
        face = "white" if hollow and one.exploratory else colour
        axes.plot(ends, [row, row], color=colour, linewidth=1.6, solid_capstyle="butt")
        axes.plot([effect / unit], [row], "o", color=colour, markersize=5, markerfacecolor=face)
    _rows(axes, [one.hypothesis.name for one in verdicts])


def _rows(axes: "Axes", names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


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
    low, high = min(sizes), max(sizes)
    return SMALL + (LARGE - SMALL) * ((value - low) / (high - low) if high > low else 0.5)


# What is drawn of a task that is trained and scored -----------------------------------------


def length_curves(findings: Findings, task: Task) -> "Figure":
    """Skill and accuracy against length: every seed thin, the mean of the arm thick."""
    figure, (left, right) = new_figure(PAGE, 2.9, columns=2)
    for axes, metric in ((left, "skill"), (right, "accuracy")):
        _against_length(axes, task, metric)
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


def _looks(task: Task) -> Iterator[tuple[Arm, str, Any]]:
    return ((arm, *look) for arm, look in zip(task.arms, looks(len(task.arms)), strict=True))


def _against_length(axes: "Axes", task: Task, metric: str) -> None:
    """A metric on a log axis of lengths, the trained range shaded; seeds thin, means thick."""
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
    for arm, colour, dash in _looks(task):
        found = [(length, arm.values(metric, length, split)) for split, length in task.measured]
        for number in arm.seeds:
            points = [(length, of_seed[number]) for length, of_seed in found if number in of_seed]
            if points:
                axes.plot(*zip(*points, strict=True), color=colour, linewidth=0.5, alpha=0.35)
        means = [(length, arm.interval(metric, length, split)) for split, length in task.measured]
        known_means = [(length, one.mean) for length, one in means if one is not None]
        if known_means:
            x, y = zip(*known_means, strict=True)
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
    for arm, colour, dash in _looks(task):
        found = [seed.curves["loss"] for seed in arm.seeds.values() if "loss" in seed.curves]
        means = {x: values for x, values in _thin(axes, found, colour) if len(values) == len(found)}
        if means:
            y = [sum(values) / len(values) for values in means.values()]
            axes.plot([*means], y, color=colour, linestyle=dash, linewidth=1.5, label=arm.name)
    axes.set_xlabel("training step")
    axes.set_ylabel("training loss (nats)")
    axes.set_ylim(bottom=0)
    legend(figure, axes)
    return figure


def _thin(axes: "Axes", curves: Iterable[Curve], colour: str) -> list[tuple[int, list[float]]]:
    """Draw curves as thin lines; return the values of all of them at each place."""
    found: dict[int, list[float]] = defaultdict(list)
    for curve in curves:
        axes.plot(*zip(*curve, strict=True), color=colour, linewidth=0.4, alpha=0.3)
        for place, value in curve:
            found[place].append(value)
    return sorted(found.items())


def cost(findings: Findings, task: Task) -> "Figure":
    """Skill at the longest tested length against the CPU seconds of a run, seed by seed."""
    figure, (axes,) = new_figure(COLUMN * 1.35, 2.6)
    longest = max(task.lengths)
    for arm, colour, _ in _looks(task):
        skills = arm.values("skill", longest)
        points = [
            (run.cpu_seconds, skills[run.seed])
            for run in arm.runs
            if run.seed in skills and run.cpu_seconds
        ]
        if points:
            x, y = zip(*points, strict=True)
            axes.scatter(x, y, s=14, color=colour, alpha=0.75, linewidths=0, label=arm.name)
    axes.axhline(0, color=FAINT, linewidth=0.8)
    axes.set_xlim(left=0)
    axes.set_xlabel("CPU seconds of a run")
    axes.set_ylabel(f"skill at length {longest}")
    legend(figure, axes)
    return figure


def final_skill(findings: Findings, task: Task) -> "Figure":
    """Skill of every seed, and the step at which it first fitted, an arm a row.

    Final accuracy and learning speed are two answers: an arm may be slow and still get there. A
    seed that did not fit stands hollow where its training ended.
    """
    from matplotlib.ticker import MaxNLocator

    longest = max(task.lengths)
    ends = [step for arm in task.arms for met in (True, False) for step in arm.times(reached=met)]
    height = 0.75 + 0.21 * len(task.arms)
    figure, plots = new_figure(PAGE if ends else PAGE * 0.6, height, columns=2 if ends else 1)
    for axes in plots:
        _rows(axes, [arm.name for arm in task.arms])
        axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.5)
    skill = plots[0]
    for row, arm in enumerate(task.arms):
        values = list(arm.values("skill", longest).values())
        for value in values:
            skill.plot([value], [row], "o", markersize=4, color=COLOUR, alpha=0.6)
        if values:
            mean = sum(values) / len(values)
            skill.plot([mean, mean], [row - 0.3, row + 0.3], color=COLOUR, linewidth=1.8)
    skill.axvline(findings.threshold, color=FAINT, linewidth=0.6, linestyle=(0, (2, 3)))
    skill.axvline(0, color=FAINT, linewidth=0.8)
    skill.set_xlabel(f"skill at length {longest}")
    if ends:
        times = plots[1]
        times.set_yticklabels([])
        for row, arm in enumerate(task.arms):
            _draw_times(times, row, arm)
        times.set_xlim(0, max(task.steps, *ends) * 1.05)
        times.xaxis.set_major_locator(MaxNLocator(5))
        times.set_xlabel("steps to fit (hollow: ended without)")
    return figure


def _draw_times(axes: "Axes", row: int, arm: Arm) -> None:
    """One dot a seed: filled where it met the criterion, hollow where it ended without."""
    for met, face in ((True, COLOUR), (False, "white")):
        for steps in arm.times(reached=met):
            look: Any = {"markersize": 4, "alpha": 0.6, "markerfacecolor": face}
            axes.plot([steps], [row], "o", color=COLOUR, **look)


GRADIENT = re.compile(r"gradient_norm\[(\d+)\]@\d+$")
MOMENTS = 3
"""Gradients are drawn at so many moments of training at most."""


def gradients(findings: Findings, task: Task) -> "Figure":
    """The norm of the gradient of each layer, untrained and during training, one line an arm."""
    import numpy as np
    from matplotlib.ticker import MaxNLocator

    moments = _moments(task)
    figure, columns = new_figure(PAGE, 2.7, columns=len(moments))
    for axes, step in zip(columns, moments, strict=True):
        for arm, colour, dash in _looks(task):
            points = _by_layer(arm, step)
            if points:
                x, y = zip(*points, strict=True)
                axes.plot(x, y, color=colour, linestyle=dash, linewidth=1.4, label=arm.name)
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
    """Return whether gradients of several layers were taken."""
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
    found: dict[int, list[float]] = defaultdict(list)
    for seed in arm.seeds.values():
        for metric, curve in seed.curves.items():
            layer = GRADIENT.match(metric)
            if layer:
                found[int(layer[1]) + 1] += [norm for at, norm in curve if at == step and norm > 0]
    return [(layer, geometric_mean(norms)) for layer, norms in sorted(found.items()) if norms]


# What is drawn of a task whose runs are measured in a way of their own ----------------------

COLUMNS = 3


def metrics(findings: Findings, task: Task) -> "Figure":
    """Every metric, one plot each: against length, or arm by arm where there is one length."""
    return _by_arm(task) if len(task.lengths) == 1 else _by_length(task)


def bins(findings: Findings, task: Task) -> "Figure":
    """Every metric that is measured by bin, such as layer by layer, against the bin."""
    figure, grid = _grid(task.binned, 1.9, shared=False)
    for axes, metric in zip(grid, task.binned, strict=True):
        places: set[int] = set()
        for arm, colour, dash in _looks(task):
            of_seeds = (seed.bins.items() for seed in arm.seeds.values())
            curves = [curve for each in of_seeds for (name, _), curve in each if name == metric]
            found = dict(_thin(axes, curves, colour))
            places |= found.keys()
            if found:
                y = [sum(values) / len(values) for values in found.values()]
                look: Any = {"color": colour, "linestyle": dash, "linewidth": 1.5}
                axes.plot([*found], y, ".", label=arm.name, **look)
        axes.set_xticks(sorted(places))
        axes.set_title(metric)
    legend(figure, grid[0])
    return figure


def _by_length(task: Task) -> "Figure":
    """Against length, both axes logarithmic where that is possible."""
    figure, grid = _grid(task.metrics, 1.9, shared=False)
    for axes, metric in zip(grid, task.metrics, strict=True):
        _against_length(axes, task, metric)
        values = [
            v for arm in task.arms for one in task.lengths for v in arm.values(metric, one).values()
        ]
        if values and min(values) > 0:
            axes.set_yscale("log")
        axes.set_title(metric)
        axes.set_xlabel("length")
    legend(figure, grid[0])
    return figure


def _by_arm(task: Task) -> "Figure":
    """Arm by arm: every seed a small dot, the mean of the arm a line."""
    [length], arms = task.lengths, task.arms
    figure, grid = _grid(task.metrics, 0.4 + 0.16 * len(arms), shared=True)
    for axes, metric in zip(grid, task.metrics, strict=True):
        for row, (arm, colour, _) in enumerate(_looks(task)):
            values = list(arm.values(metric, length).values())
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
    rows = -(-len(metrics) // COLUMNS)
    figure, grid = new_figure(PAGE, 0.6 + height * rows, COLUMNS, rows, sharey=shared)
    for axes in grid[len(metrics) :]:
        axes.remove()
    return figure, grid[: len(metrics)]
