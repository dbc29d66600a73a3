"""Drawings of masks as SVG pictures."""

from html import escape
from pathlib import Path

from registry.problems import ConfigError, Problem

CELL, GAP = 20, 2
LEFT, TOP, EDGE = 60, 76, 24
"""Room for the labels of the queries, for title and labels of the keys, and at the other sides."""

MAY, MAY_NOT, INK = "#2b5c8a", "#e6e9ed", "#222222"


def write_svg(drawing: str, title: str, file: Path) -> str:
    """Write the picture of a mask, and say where it is.

    Raises:
        ConfigError: If the file is not named .svg or cannot be written.
    """
    if file.suffix != ".svg":
        raise ConfigError([Problem("out", f"pictures are SVG, in a file named .svg; got {file}")])
    try:
        file.write_text(svg(drawing, title), encoding="utf-8")
    except OSError as error:
        rule = f"cannot be written ({error.strerror})"
        raise ConfigError([Problem("out", rule, file=str(file))]) from error
    return f"drawn in {file}"


def svg(drawing: str, title: str) -> str:
    """The picture of a mask that is drawn as text: a row for each query, '#' where it may attend.

    Wide masks get a number every so many tokens, so that numbers never touch.
    """
    rows = drawing.split("\n")
    length = len(rows)
    width = LEFT + max(CELL * max(length, 10), 8 * len(title)) + EDGE
    height = TOP + CELL * length + 2 * EDGE
    step = next((step for step in (1, 2, 5, 10, 20, 50, 100) if length <= 25 * step), 1000)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif" font-size="12" '
            f'fill="{INK}">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="white"/>',
            _text(LEFT, 22, title, "start", 'font-size="14"'),
            *_axes(length, step),
            *(
                _cell(row, column, rows[row][column])
                for row in range(length)
                for column in range(length)
            ),
            *_legend(TOP + CELL * length + EDGE),
            "</svg>\n",
        ]
    )


def _axes(length: int, step: int) -> list[str]:
    middle = TOP + CELL * length / 2
    numbers = range(0, length, step)
    return [
        _text(LEFT + CELL * length / 2, 48, "key"),
        _text(18, middle, "query", extra=f'transform="rotate(-90 18 {middle:g})"'),
        *(_text(LEFT + CELL * (at + 0.5), TOP - 8, str(at)) for at in numbers),
        *(_text(LEFT - 8, TOP + CELL * (at + 0.5) + 4, str(at), "end") for at in numbers),
    ]


def _cell(row: int, column: int, sign: str) -> str:
    return _square(LEFT + CELL * column, TOP + CELL * row, MAY if sign == "#" else MAY_NOT)


def _legend(top: int) -> list[str]:
    return [
        _square(LEFT, top - 8, MAY),
        _text(LEFT + CELL + 4, top + 6, "may attend", "start"),
        _square(LEFT + 5.5 * CELL, top - 8, MAY_NOT),
        _text(LEFT + 6.5 * CELL + 4, top + 6, "may not", "start"),
    ]


def _square(x: float | int, y: float | int, fill: str) -> str:
    side = CELL - GAP
    return f'<rect x="{x:g}" y="{y:g}" width="{side}" height="{side}" rx="2" fill="{fill}"/>'


def _text(
    x: float | int, y: float | int, words: str, anchor: str = "middle", extra: str = ""
) -> str:
    extra = f" {extra}" if extra else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'
