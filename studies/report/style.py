"""The style of figures: the same on every machine, whatever the reader's own settings are."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe and Ito's colours, which people with any common colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", (0, (5, 2)), (0, (1, 1)))
INK, FAINT, SHADE = "#1f2430", "#8a8f9c", "#eceef2"

COLOUR_OF = {
    "supported": "#00785a",
    "refuted": "#b3261e",
    "inconclusive": "#8a5a00",
    "not tested": "#6b7080",
}
"""The colour of each status of a verdict."""

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
    """Draw in the style of reports."""
    import matplotlib

    wanted: Any = {**matplotlib.rcParamsDefault, **STYLE}
    with matplotlib.rc_context(wanted):
        yield


def as_written(figure: "Figure") -> "Figure":
    """The figure, with names that have a $ shown as they are: they are no formulas."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if isinstance(text, Text) and "$" in text.get_text():
            text.set_parse_math(False)
    return figure


def new_figure(
    width: float, height: float, columns: int = 1, rows: int = 1, *, sharey: bool = False
) -> tuple["Figure", list["Axes"]]:
    """A figure of this size in inches, with its axes row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, sharey=sharey).flat)


def legend(figure: "Figure", axes: "Axes") -> None:
    """One legend below the figure."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        widest = 0.5 + 0.065 * max(map(len, labels))  # inches of a line and its words
        columns = min(len(labels), max(1, int(figure.get_figwidth() / widest)))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def looks(arms: int) -> list[tuple[str, str | tuple[int, tuple[int, ...]]]]:
    """A colour and a dash for each of so many arms; dashes change when colours run out."""
    return [
        (COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)])
        for number in range(arms)
    ]
