"""The figure of a search: what it tried, and the Pareto front."""

from typing import TYPE_CHECKING

from studies.report.findings import Front
from studies.report.palette import FAINT
from studies.report.style import PAGE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
