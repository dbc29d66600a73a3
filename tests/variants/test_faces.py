"""Faces: a package offers its parts by name, and a new file joins by being there."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.messages import Messages

FACE = """
from variants.faces import face

__getattr__, __dir__ = face(__name__, {"contract": ["Contract"]})
"""
CONTRACT = "class Contract:\n    name: str\n\nclass Other: ...\n"
PART = '''
class Detail:
    size = 3

class Mine(Detail):
    """Mine."""

    name = "mine"
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path / "faced"
    folder.mkdir()
    for name, text in {"__init__": FACE, "contract": CONTRACT, "mine": PART}.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "_hidden.py").write_text('class Hidden:\n    name = "_hidden"\n')
    (folder / "loose.py").write_text('class Loose:\n    name = "another"\n')
    monkeypatch.syspath_prepend(tmp_path)
    yield "faced"
    for module in [name for name in sys.modules if name.split(".")[0] == "faced"]:
        del sys.modules[module]


def test_a_face_shows_what_is_told_and_the_part_of_each_file(package: str) -> None:
    faced = importlib.import_module(package)
    assert faced.__all__ == dir(faced) == ["Contract", "Mine"]
    assert not [name for name in sys.modules if name.startswith("faced.")]
    assert faced.Mine.__module__ == "faced.mine"
    assert faced.Contract is importlib.import_module("faced.contract").Contract


@pytest.mark.parametrize("name", ["Other", "Detail", "Hidden", "Loose", "mine_", "_private"])
def test_a_face_shows_nothing_else(messages: Messages, package: str, name: str) -> None:
    faced = importlib.import_module(package)
    with messages.raises(AttributeError):
        getattr(faced, name)


def test_a_star_takes_the_whole_face(package: str) -> None:
    space: dict[str, object] = {}
    exec(f"from {package} import *", space)
    assert {"Contract", "Mine"} <= set(space)


def test_a_new_file_joins_by_being_there(package: str, tmp_path: Path) -> None:
    faced = importlib.import_module(package)
    assert "Late" not in dir(faced)
    (tmp_path / "faced" / "late.py").write_text('class Late:\n    name: str = "late"\n')
    importlib.invalidate_caches()
    assert faced.Late.__module__ == "faced.late"
