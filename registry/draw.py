"""Drawings of masks as SVG pictures."""

from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from registry.choices import MaskExpression, build_mask, resolve
from registry.errors import ConfigError, Problem

INK, PAPER, MAY_NOT = "#222222", "#ffffff", "#e6e9ed"
COLOURS = ("#2b5c8a", "#e08e2b", "#3f9b73", "#a34f8f", "#c9b037", "#6fb1d6")
"""Colours that stay apart for those who see few of them; the first is the one of a lone mask."""

LEFT, EDGE, LINE = 64, 24, 20
"""Room for the labels of the queries, and at the other sides; the height of a line of words."""

WIDEST = 720
"""The most that the cells of a side take together, where they can be told apart."""


def layers_of(mask: str, queries: int, keys: int | None = None) -> dict[str, str]:
    """What the outermost `|` of a mask joins, each drawn as text under its own words.

    Raises:
        ConfigError: If it is no mask.
        ValueError: If it does not fit the sizes.
    """

    def drawn(part: str) -> str:
        return build_mask(resolve("mask", part)).draw(queries, keys=keys)

    whole = {"may attend": drawn(mask)}
    parts = [] if mask.isidentifier() else MaskExpression(mask).alternatives()
    return {part: drawn(part) for part in parts} if 1 < len(parts) <= len(COLOURS) else whole


def write_svg(layers: Mapping[str, str], title: str, file: Path) -> str:
    """Write the picture of a mask, and say where it is.

    Raises:
        ConfigError: If the file is not named .svg or cannot be written.
    """
    if file.suffix != ".svg":
        raise ConfigError([Problem("out", f"pictures are SVG, in a file named .svg; got {file}")])
    try:
        file.write_text(svg(layers, title), encoding="utf-8")
    except OSError as error:
        rule = f"cannot be written ({error.strerror})"
        raise ConfigError([Problem("out", rule, file=str(file))]) from error
    return f"drawn in {file}"


def svg(layers: Mapping[str, str], title: str) -> str:
    """The picture of a mask: a row for each query, a colour where it may attend.

    Args:
        layers: What the mask allows, drawn as text ('#' may attend), under words for the legend. A
            cell that several allow has the colour of the first.
        title: What stands above.
    """
    rows = _merged(list(layers.values()))
    queries, keys = len(rows), len(rows[0])
    cell = max(2, min(20, WIDEST // max(queries, keys)))
    titles = wrap(title, 72) or [""]
    top = EDGE + LINE * (len(titles) + 2)
    legend = dict(zip([*layers, "may not attend"], [*COLOURS[: len(layers)], MAY_NOT], strict=True))
    words = 8 * max(map(len, titles)), 7 * max(map(len, legend)) + LINE
    width = LEFT + max(cell * keys, *words) + EDGE
    height = top + cell * queries + LINE * (len(legend) + 1) + EDGE
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif" font-size="12" '
            f'fill="{INK}" shape-rendering="crispEdges">',
            f"<title>{escape(title)}</title>",
            _rectangle(0, 0, width, height, PAPER),
            *(
                _text(LEFT, EDGE + LINE * line, words, "start", 'font-size="14"')
                for line, words in enumerate(titles)
            ),
            *_axes(queries, keys, cell, top),
            _rectangle(LEFT, top, cell * keys, cell * queries, MAY_NOT),
            *_runs(rows, cell, top),
            *_grid(queries, keys, cell, top),
            *_legend(legend, top + cell * queries + LINE),
            "</svg>\n",
        ]
    )


def _merged(drawings: list[str]) -> list[list[int | None]]:
    """For each cell the number of the first drawing that allows it, None where none does."""
    return [
        [
            next((n for n, sign in enumerate(cell) if sign == "#"), None)
            for cell in zip(*row, strict=True)
        ]
        for row in zip(*(drawing.split("\n") for drawing in drawings), strict=True)
    ]


def _runs(rows: list[list[int | None]], cell: int, top: int) -> Iterator[str]:
    """One path a colour, through the runs of its cells in each row: wide pictures stay small."""
    paths = dict.fromkeys(range(len(COLOURS)), "")
    for at, row in enumerate(rows):
        for number, run in groupby(range(len(row)), key=row.__getitem__):
            columns = list(run)
            if number is not None:
                width, x, y = cell * len(columns), LEFT + cell * columns[0], top + cell * at
                paths[number] += f"M{x} {y}h{width}v{cell}h-{width}z"
    for number, path in paths.items():
        if path:
            yield f'<path d="{path}" fill="{COLOURS[number]}"/>'


def _grid(queries: int, keys: int, cell: int, top: int) -> Iterator[str]:
    """Lines between the cells, where these are large enough to be told apart."""
    if cell < 5:
        return
    right, bottom = LEFT + cell * keys, top + cell * queries
    lines = [f"M{LEFT + cell * at} {top}V{bottom}" for at in range(1, keys)]
    lines += [f"M{LEFT} {top + cell * at}H{right}" for at in range(1, queries)]
    if lines:
        yield f'<path d="{"".join(lines)}" stroke="{PAPER}" stroke-width="{cell / 10:g}"/>'


def _axes(queries: int, keys: int, cell: int, top: int) -> Iterator[str]:
    middle = top + cell * queries / 2
    yield _text(LEFT + cell * keys / 2, top - 26, "key")
    yield _text(18, middle, "query", extra=f'transform="rotate(-90 18 {middle:g})"')
    room = 8 * len(str(max(queries, keys) - 1)) + 4
    steps = (n for size in (1, 10, 100, 1000) for n in (size, 2 * size, 5 * size))
    step = next(n for n in steps if n * cell >= room)
    for at in range(0, keys, step):
        yield _text(LEFT + cell * (at + 0.5), top - 8, str(at))
    for at in range(0, queries, step):
        yield _text(LEFT - 8, top + cell * (at + 0.5) + 4, str(at), "end")


def _legend(colours: Mapping[str, str], top: int) -> Iterator[str]:
    for line, (words, colour) in enumerate(colours.items()):
        y = top + LINE * line
        yield _rectangle(LEFT, y - 2, 14, 14, colour)
        yield _text(LEFT + LINE + 2, y + 9, words, "start")


def _rectangle(x: int, y: int, width: int, height: int, fill: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"/>'


def _text(
    x: float | int, y: float | int, words: str, anchor: str = "middle", extra: str = ""
) -> str:
    extra = f" {extra}" if extra else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'
