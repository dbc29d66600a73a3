"""The figures of a report, drawn from its findings."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from studies.report.findings import Arm, Findings, Panel
from studies.report.numbers import plain
from studies.report.palette import FAINT, INK, SHADE, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.35, 6.9
"""Widths in inches: one column of a two-column paper, and its whole text width."""

STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "encoder-sandbox",
    "pdf.fonttype": 42,
    "figure.dpi": 100,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of reports, whatever the reader's own settings are."""
    import matplotlib

    wanted: Any = {**matplotlib.rcParamsDefault, **STYLE}
    with matplotlib.rc_context(wanted):
        yield


def figures(findings: Findings) -> dict[str, Callable[[], "Figure"]]:
    """Every figure that the findings have numbers for, by its file name."""
    drawn: dict[str, Callable[[], Figure]] = {}
    if findings.verdicts:
        drawn["contrasts"] = lambda: contrasts(findings)
    for number, panel in enumerate(findings.panels, start=1):
        drawn |= {
            f"panel{number}_{name}": lambda draw=draw, panel=panel: draw(findings, panel)
            for name, draw in PER_PANEL.items()
            if any(seed.values for arm in panel.arms for seed in arm.seeds)
        }
    return drawn


def _figure(width: float, height: float, columns: int = 1) -> tuple["Figure", list["Axes"]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False)[0]
    return figure, list(axes)


def length_curves(findings: Findings, panel: Panel) -> "Figure":
    """Skill and accuracy against length: every seed thin, the mean of the arm thick."""
    figure, (left, right) = _figure(PAGE, 2.9, columns=2)
    for axes, metric in ((left, "skill"), (right, "accuracy")):
        _lengths(axes, panel)
        for name, (colour, dash) in _looks(panel).items():
            _seeds_and_mean(axes, panel, _arm(panel, name), metric, colour, dash)
    left.set_ylabel("skill")
    left.axhline(0, color=FAINT, linewidth=0.8)
    left.axhline(findings.threshold, color=FAINT, linewidth=0.6, linestyle=(0, (2, 3)))
    right.set_ylabel("accuracy")
    lengths = [length for _, length in panel.measured]
    floors = [panel.floor(length) for length in lengths]
    right.plot(lengths, floors, color=INK, linewidth=0.9, linestyle=":", label="best blind guess")
    right.set_ylim(-0.03, 1.03)
    left.set_ylim(min(-0.13, left.get_ylim()[0]), 1.03)
    _legend(figure, right)
    return figure


def _looks(panel: Panel) -> dict[str, tuple[str, Any]]:
    return looks(arm.name for arm in panel.arms)


def _arm(panel: Panel, name: str) -> Arm:
    return next(arm for arm in panel.arms if arm.name == name)


def _lengths(axes: "Axes", panel: Panel) -> None:
    """A log axis of lengths, on which the trained range is shaded."""
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator, ScalarFormatter

    shortest, longest = panel.trained
    axes.set_xscale("log", base=2)
    known = [length for _, length in panel.measured]
    low, high = min(known), max(known)
    axes.set_xlim(low / 1.08, high * 1.08)
    axes.axvspan(max(shortest, low / 1.08), longest, color=SHADE, linewidth=0)
    ticks = [longest]
    for length in sorted(known):  # those that do not touch one another
        if all(max(length, tick) / min(length, tick) >= 1.4 for tick in ticks):
            ticks.append(length)
    axes.xaxis.set_major_locator(FixedLocator(sorted(ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("sequence length (shaded: trained)")


def _seeds_and_mean(
    axes: "Axes", panel: Panel, arm: Arm, metric: str, colour: str, dash: Any
) -> None:
    for seed in arm.seeds:
        points = [
            (length, seed.values[split, metric, length])
            for split, length in panel.measured
            if (split, metric, length) in seed.values
        ]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=0.5, alpha=0.35)
    means = [(length, arm.interval(metric, length, split)) for split, length in panel.measured]
    known = [(length, found.mean) for length, found in means if found is not None]
    if known:
        x, y = zip(*known, strict=True)
        axes.plot(x, y, color=colour, linestyle=dash, linewidth=1.8, label=arm.name, zorder=3)


def _legend(figure: "Figure", axes: "Axes") -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        columns = min(len(labels), round(figure.get_figwidth()))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def heat_map(findings: Findings, panel: Panel) -> "Figure":
    """Arms x lengths, coloured by mean skill."""
    import numpy as np

    rows = len(panel.arms)
    figure, (axes,) = _figure(PAGE, 0.75 + 0.27 * rows)
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
    figure, (axes,) = _figure(COLUMN * 1.35, 2.6)
    for name, (colour, dash) in _looks(panel).items():
        curves = [seed.curves["loss"] for seed in _arm(panel, name).seeds if "loss" in seed.curves]
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
    _legend(figure, axes)
    return figure


def cost(findings: Findings, panel: Panel) -> "Figure":
    """Skill at the longest tested length against the CPU seconds of a run, seed by seed."""
    figure, (axes,) = _figure(COLUMN * 1.35, 2.6)
    longest = max(panel.lengths)
    for name, (colour, _) in _looks(panel).items():
        points = [
            (seed.run.cpu_seconds, seed.values["test", "skill", longest])
            for seed in _arm(panel, name).seeds
            if ("test", "skill", longest) in seed.values and seed.run.cpu_seconds
        ]
        if points:
            x, y = zip(*points, strict=True)
            axes.scatter(x, y, s=14, color=colour, alpha=0.75, linewidths=0, label=name)
    axes.axhline(0, color=FAINT, linewidth=0.8)
    axes.set_xlim(left=0)
    axes.set_xlabel("CPU seconds of a run")
    axes.set_ylabel(f"skill at length {longest}")
    _legend(figure, axes)
    return figure


def contrasts(findings: Findings) -> "Figure":
    """Effects with their simultaneous intervals, against the smallest effect of interest."""
    from studies.report.wording import COLOUR_OF, contrast_name

    shown = [(one, one.effect) for one in findings.verdicts if one.effect is not None]
    figure, (axes,) = _figure(PAGE, 0.9 + 0.34 * max(1, len(shown)))
    for row, (verdict, effect) in enumerate(shown):
        axes.add_patch(_band(row, verdict.hypothesis.smallest_effect))
        low = effect if verdict.low is None else verdict.low
        high = effect if verdict.high is None else verdict.high
        colour = COLOUR_OF[verdict.status]
        axes.plot([low, high], [row, row], color=colour, linewidth=1.6, solid_capstyle="butt")
        axes.plot([effect], [row], "o", color=colour, markersize=5)
    axes.axvline(0, color=FAINT, linewidth=0.8)
    axes.set_yticks(range(len(shown)), [contrast_name(one.hypothesis) for one, _ in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("effect (difference of means over seeds; shaded: smaller than of interest)")
    return figure


def _band(row: int, delta: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((-delta, row - 0.32), 2 * delta, 0.64, color=SHADE, linewidth=0)


PER_PANEL: dict[str, Callable[[Findings, Panel], "Figure"]] = {
    "lengths": length_curves,
    "heat_map": heat_map,
    "learning": learning_curves,
    "cost": cost,
}
