"""Masks as pictures."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from registry.cli import main
from registry.draw import COLOURS, MAY_NOT, layers_of, svg
from tests.messages import Messages

NAMESPACE = "{http://www.w3.org/2000/svg}"


def command(*words: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(words)
    return int(caught.value.code or 0)


def texts(picture: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(picture).iter(f"{NAMESPACE}text")]


def painted(picture: str) -> list[list[str]]:
    """The colour at the middle of each cell, read from what the picture paints."""
    tree = ElementTree.fromstring(picture)
    board = list(tree.iter(f"{NAMESPACE}rect"))[1].attrib
    left, top, width, height = (int(board[key]) for key in ("x", "y", "width", "height"))
    runs = [
        (int(x), int(y), int(width), int(height), path.attrib["fill"])
        for path in tree.iter(f"{NAMESPACE}path")
        for x, y, width, height in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h", path.attrib["d"])
    ]
    cell = runs[0][3]

    def colour(x: float, y: float) -> str:
        here = [run for run in runs if 0 < x - run[0] < run[2] and 0 < y - run[1] < run[3]]
        assert len(here) <= 1
        return here[0][4] if here else board["fill"]

    columns, rows = ([at + cell / 2 for at in range(0, n, cell)] for n in (width, height))
    return [[colour(left + x, top + y) for x in columns] for y in rows]


def test_a_picture_holds_the_cells_of_the_drawing() -> None:
    drawing = "#...\n##..\n.##.\n#.##"
    signs = {COLOURS[0]: "#", MAY_NOT: "."}
    for n in (1, 30):  # from the largest cells to small ones
        wide = "\n".join(row * n for row in drawing.split("\n"))
        found = painted(svg({"may attend": wide}, "a mask"))
        assert "\n".join("".join(signs[fill] for fill in row) for row in found) == wide


def test_what_or_joins_has_a_colour_of_its_own_and_a_line_in_the_legend() -> None:
    layers = layers_of("window(radius=1) & ~window(radius=0) | (causal | prefix(length=1))", 3)
    assert layers == {
        "window(radius=1) & ~window(radius=0)": ".#.\n#.#\n.#.",
        "causal": "#..\n##.\n###",
        "prefix(length=1)": "#..\n#..\n#..",
    }
    one, two, _ = COLOURS[:3]
    assert painted(svg(layers, "")) == [[two, one, MAY_NOT], [one, two, one], [two, one, two]]
    assert texts(svg(layers, ""))[-4:] == [*layers, "may not attend"]


@pytest.mark.parametrize("mask", ["causal", "causal & ~prefix(length=1)", "~(causal | full)"])
def test_a_mask_that_joins_nothing_by_or_has_one_colour(mask: str) -> None:
    assert list(layers_of(mask, 3)) == ["may attend"]


def test_more_than_there_are_colours_for_have_one_colour() -> None:
    joined = [f"prefix(length={n})" for n in range(len(COLOURS) + 1)]
    assert list(layers_of(" | ".join(joined), 3)) == ["may attend"]
    assert list(layers_of(" | ".join(joined[1:]), 3)) == joined[1:]


def test_a_picture_says_what_it_shows() -> None:
    words = texts(svg({"may attend": "##\n.#"}, "causal & ~window(radius=1) <b>"))
    assert words == [
        *("causal & ~window(radius=1) <b>", "key", "query", "0", "1", "0", "1"),
        *("may attend", "may not attend"),
    ]


def test_a_long_mask_is_wrapped_and_everything_lies_within_the_picture() -> None:
    title = " | ".join(["window(radius=1)"] * 20)
    picture = svg(dict.fromkeys(["causal " * 9, "full"], "#"), title)
    tree = ElementTree.fromstring(picture)
    assert " ".join(words for words in texts(picture) if "window" in words) == title
    width, height = (int(tree.attrib[side]) for side in ("width", "height"))
    for node in tree.iter(f"{NAMESPACE}text"):
        assert float(node.attrib["x"]) + 6 * len(node.text or "") < width
        assert float(node.attrib["y"]) < height
    for node in tree.iter(f"{NAMESPACE}rect"):
        assert int(node.attrib["x"]) + int(node.attrib["width"]) <= width
        assert int(node.attrib["y"]) + int(node.attrib["height"]) <= height


@pytest.mark.parametrize(("size", "last"), [(1, "0"), (25, "24"), (60, "58"), (300, "280")])
def test_numbers_of_large_pictures_stand_apart(size: int, last: str) -> None:
    picture = svg({"may attend": "\n".join(["#" * size] * size)}, "full")
    at = [
        (float(node.attrib["x"]), node.text or "")
        for node in ElementTree.fromstring(picture).iter(f"{NAMESPACE}text")
        if (node.text or "").isdigit() and node.attrib["text-anchor"] == "middle"
    ]
    assert at[-1][1] == last
    assert all(next_x - x > 7 * len(word) for (x, word), (next_x, _) in pairwise(at))


def test_a_large_picture_is_a_small_file() -> None:
    assert len(svg(layers_of("causal & window(radius=9) | global_tokens(count=4)", 300), "")) < 50e3


def test_the_command_draws_into_a_file_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mask.svg"
    words = ("draw", "causal & window(radius=1)", "--size", "5", "--out", str(file))
    assert command(*words) == 0
    assert capsys.readouterr().out == f"drawn in {file}\n"
    first = file.read_text(encoding="utf-8")
    assert len(painted(first)) == 5
    assert command(*words) == 0
    assert file.read_text(encoding="utf-8") == first


def test_the_command_draws_more_keys_than_queries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("draw", 'causal(align="last")', "--size", "2", "--keys", "4")
    assert command(*words) == 0
    assert capsys.readouterr().out == "###.\n####\n"
    assert command(*words, "--out", str(tmp_path / "mask.svg")) == 0
    picture = painted((tmp_path / "mask.svg").read_text(encoding="utf-8"))
    assert picture == [[COLOURS[0]] * 3 + [MAY_NOT], [COLOURS[0]] * 4]
    capsys.readouterr()
    assert command("draw", "causal", "--size", "2", "--keys", "4") == 2
    assert "2 queries and 4 keys" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["mask.png", "missing/mask.svg"])
def test_a_file_that_cannot_be_drawn_into_is_refused(
    messages: Messages, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    assert command("draw", "causal", "--out", str(tmp_path / file)) == 2
    shown = capsys.readouterr()
    messages(shown.err)
    assert shown.out == ""
    assert not list(tmp_path.iterdir())


def test_a_mask_that_is_refused_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("draw", "cusal", "--out", str(tmp_path / "mask.svg")) == 2
    assert "did you mean 'causal'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
