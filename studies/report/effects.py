"""Effects of claims about different things, in one figure: each in units of its own δ."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from studies.report.palette import FAINT, SHADE
from studies.report.style import PAGE, new_figure
from studies.report.wording import COLOUR_OF

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from studies.statistics import Verdict

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
