"""Masks as pictures."""

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from registry.__main__ import main
from registry.drawing import svg

NAMESPACE = "{http://www.w3.org/2000/svg}"


def command(*words: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(words)
    return int(caught.value.code or 0)


def texts(picture: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(picture).iter(f"{NAMESPACE}text")]


def squares(picture: str) -> dict[tuple[float, float], str]:
    """The fill of each cell, by its place; the legend and the paper are left out."""
    nodes = list(ElementTree.fromstring(picture).iter(f"{NAMESPACE}rect"))[1:-2]
    return {
        (float(node.attrib["y"]), float(node.attrib["x"])): node.attrib["fill"] for node in nodes
    }


def test_a_picture_holds_the_cells_of_the_drawing() -> None:
    drawing = "#...\n##..\n.##.\n..##"
    fills = [fill for _, fill in sorted(squares(svg(drawing, "a mask")).items())]
    may = fills[0]
    assert ["#" if fill == may else "." for fill in fills] == list(drawing.replace("\n", ""))
    assert len(set(fills)) == 2


def test_a_picture_says_what_it_shows() -> None:
    picture = svg("##\n.#", "causal & ~window(radius=1) <b>")
    words = texts(picture)
    assert words[0] == "causal & ~window(radius=1) <b>"
    assert {"key", "query", "may attend", "may not"} <= set(words)
    assert Counter(words)["0"] == Counter(words)["1"] == 2
    title = ElementTree.fromstring(picture).find(f"{NAMESPACE}title")
    assert title is not None
    assert title.text == words[0]


@pytest.mark.parametrize(("size", "last"), [(25, "24"), (26, "24"), (60, "55"), (300, "280")])
def test_numbers_of_large_pictures_stand_apart(size: int, last: str) -> None:
    drawing = "\n".join(["#" * size] * size)
    numbers = [int(word) for word in texts(svg(drawing, "full")) if word.isdigit()]
    assert len(numbers) <= 2 * 25
    assert max(numbers) == int(last)


def test_the_command_draws_into_a_file_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mask.svg"
    words = ("draw", "causal & window(radius=1)", "--size", "5", "--out", str(file))
    assert command(*words) == 0
    assert capsys.readouterr().out == f"drawn in {file}\n"
    first = file.read_text(encoding="utf-8")
    assert len(squares(first)) == 25
    assert command(*words) == 0
    assert file.read_text(encoding="utf-8") == first


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("mask.png", "out: pictures are SVG, in a file named .svg; got "),
        ("missing/mask.svg", "out: cannot be written (No such file or directory)"),
    ],
)
def test_a_file_that_cannot_be_drawn_into_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, said: str
) -> None:
    assert command("draw", "causal", "--out", str(tmp_path / file)) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    assert not list(tmp_path.iterdir())


def test_a_mask_that_is_refused_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("draw", "cusal", "--out", str(tmp_path / "mask.svg")) == 2
    assert "did you mean 'causal'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
