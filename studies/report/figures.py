"""The figures of a report, drawn from its findings."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from studies.report.arm_figures import final_skill, gradients, has_gradients
from studies.report.findings import Findings, Panel
from studies.report.front_figure import pareto_front
from studies.report.measured_figures import bins, metrics
from studies.report.palette import FAINT, SHADE
from studies.report.panel_figures import cost, heat_map, learning_curves, length_curves
from studies.report.style import PAGE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(findings: Findings) -> dict[str, Callable[[], "Figure"]]:
    """Every figure that the findings have numbers for, by its file name."""
    drawn: dict[str, Callable[[], Figure]] = {}
    if any(one.effect is not None for one in findings.verdicts):
        drawn["contrasts"] = lambda: contrasts(findings)
    shown = findings.front
    if shown is not None and shown.best and len(shown.objectives) > 1:
        drawn["front"] = lambda: pareto_front(shown)
    for number, panel in enumerate(findings.panels, start=1):
        drawn |= {
            f"panel{number}_{name}": lambda draw=draw, panel=panel: draw(findings, panel)
            for name, draw in _of_panel(panel).items()
            if any(seed.values for arm in panel.arms for seed in arm.seeds)
            and (name != "bins" or panel.binned)
        }
    return drawn


def _of_panel(panel: Panel) -> dict[str, "Callable[[Findings, Panel], Figure]"]:
    """What is drawn of a panel: against length, where there are several."""
    if not panel.has_skill:
        return MEASURED
    drawn = TRAINED if len(panel.lengths) > 1 else AT_ONE_LENGTH
    return drawn | ({"gradients": gradients} if has_gradients(panel) else {})


def contrasts(findings: Findings) -> "Figure":
    """Effects with their simultaneous intervals, against the smallest effect of interest.

    Steps and shares have no scale in common: where both are there, all are drawn in units of δ.
    """
    from studies.analysis.results import TIMES
    from studies.report.wording import COLOUR_OF

    shown = [(one, one.effect) for one in findings.verdicts if one.effect is not None]
    mixed = len({one.hypothesis.metric in TIMES for one, _ in shown}) > 1
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


MEASURED: dict[str, Callable[[Findings, Panel], "Figure"]] = {"metrics": metrics, "bins": bins}
"""What is drawn of a panel whose runs are measured in a way of their own."""

TRAINED: dict[str, Callable[[Findings, Panel], "Figure"]] = {
    "lengths": length_curves,
    "heat_map": heat_map,
    "learning": learning_curves,
    "cost": cost,
}

AT_ONE_LENGTH: dict[str, Callable[[Findings, Panel], "Figure"]] = {
    "final": final_skill,
    "learning": learning_curves,
    "cost": cost,
}
