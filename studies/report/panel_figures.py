"""The figures of a panel on which models are trained and scored."""

from typing import TYPE_CHECKING, Any

from studies.report.findings import Arm, Findings, Panel
from studies.report.numbers import plain
from studies.report.palette import FAINT, INK, SHADE, looks
from studies.report.style import COLUMN, PAGE, legend, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def length_curves(findings: Findings, panel: Panel) -> "Figure":
    """Skill and accuracy against length: every seed thin, the mean of the arm thick."""
    figure, (left, right) = new_figure(PAGE, 2.9, columns=2)
    for axes, metric in ((left, "skill"), (right, "accuracy")):
        length_axis(axes, panel)
        for name, (colour, dash) in arm_looks(panel).items():
            seeds_and_mean(axes, panel, arm_named(panel, name), metric, colour, dash)
    left.set_ylabel("skill")
    left.axhline(0, color=FAINT, linewidth=0.8)
    left.axhline(findings.threshold, color=FAINT, linewidth=0.6, linestyle=(0, (2, 3)))
    right.set_ylabel("accuracy")
    lengths = [length for _, length in panel.measured]
    floors = [panel.floor(length) for length in lengths]
    right.plot(lengths, floors, color=INK, linewidth=0.9, linestyle=":", label="best blind guess")
    right.set_ylim(-0.03, 1.03)
    left.set_ylim(min(-0.13, left.get_ylim()[0]), 1.03)
    legend(figure, right)
    return figure


def arm_looks(panel: Panel) -> dict[str, tuple[str, Any]]:
    return looks(arm.name for arm in panel.arms)


def arm_named(panel: Panel, name: str) -> Arm:
    return next(arm for arm in panel.arms if arm.name == name)


def length_axis(axes: "Axes", panel: Panel) -> None:
    """A log axis of lengths, on which the trained range is shaded."""
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator, ScalarFormatter

    shortest, longest = panel.trained
    axes.set_xscale("log", base=2)
    known = [length for _, length in panel.measured]
    low, high = min(known), max(known)
    axes.set_xlim(low / 1.08, high * 1.08)
    if panel.has_skill:
        axes.axvspan(max(shortest, low / 1.08), longest, color=SHADE, linewidth=0)
    ticks = [longest] if panel.has_skill else [high]
    for length in sorted(known):  # those that do not touch one another
        if all(max(length, tick) / min(length, tick) >= 1.4 for tick in ticks):
            ticks.append(length)
    axes.xaxis.set_major_locator(FixedLocator(sorted(ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("sequence length (shaded: trained)")


def seeds_and_mean(
    axes: "Axes", panel: Panel, arm: Arm, metric: str, colour: str, dash: Any
) -> None:
    found = [(length, arm.values(metric, length, split)) for split, length in panel.measured]
    for seed in arm.seeds:
        number = seed.run.seed
        points = [(length, of_seed[number]) for length, of_seed in found if number in of_seed]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=0.5, alpha=0.35)
    means = [(length, arm.interval(metric, length, split)) for split, length in panel.measured]
    known = [(length, found.mean) for length, found in means if found is not None]
    if known:
        x, y = zip(*known, strict=True)
        axes.plot(x, y, color=colour, linestyle=dash, linewidth=1.8, label=arm.name, zorder=3)


def heat_map(findings: Findings, panel: Panel) -> "Figure":
    """Arms x lengths, coloured by mean skill."""
    import numpy as np

    rows = len(panel.arms)
    figure, (axes,) = new_figure(PAGE, 0.75 + 0.27 * rows)
    found = [[arm.interval("skill", length) for length in panel.lengths] for arm in panel.arms]
    means = np.array([[np.nan if one is None else one.mean for one in row] for row in found])
    axes.imshow(means, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(panel.lengths)), [str(length) for length in panel.lengths])
    axes.set_yticks(range(rows), [arm.name for arm in panel.arms])
    axes.set_xlabel("sequence length")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for (row, column), value in np.ndenumerate(means):
        text = plain(None if np.isnan(value) else float(value))
        ink = INK if np.isnan(value) or value > 0.55 else "white"
        axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=7)
    return figure


def learning_curves(findings: Findings, panel: Panel) -> "Figure":
    """Training loss against step: every seed thin, the mean of the arm thick."""
    figure, (axes,) = new_figure(COLUMN * 1.35, 2.6)
    for name, (colour, dash) in arm_looks(panel).items():
        curves = [
            seed.curves["loss"] for seed in arm_named(panel, name).seeds if "loss" in seed.curves
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


def cost(findings: Findings, panel: Panel) -> "Figure":
    """Skill at the longest tested length against the CPU seconds of a run, seed by seed."""
    figure, (axes,) = new_figure(COLUMN * 1.35, 2.6)
    longest = max(panel.lengths)
    for name, (colour, _) in arm_looks(panel).items():
        arm = arm_named(panel, name)
        skills = arm.values("skill", longest)
        points = [
            (seed.run.cpu_seconds, skills[seed.run.seed])
            for seed in arm.seeds
            if seed.run.seed in skills and seed.run.cpu_seconds
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
