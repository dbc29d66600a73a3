"""Installed packages: their parts join when a table is listed or asked for an unknown name."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry import ConfigError, isolated, norms, positions
from registry.cli import main
from registry.registry import INSTALLED

MINE = """
from registry import register
from variants.positions import Position

@register
class Mine(Position):
    name = "installed"
"""
CLASS = """
from variants.norms import Norm

class Plain(Norm):
    name = "plain"

number = 3
"""


def install(folder: Path, entries: str, **modules: str) -> None:
    """A package as pip would leave it: its modules, and what it announces."""
    info = folder / "fine_parts-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fine-parts\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[encoder_sandbox.parts]\n{entries}\n")
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(INSTALLED, "joined", False)
    yield tmp_path
    for module in ("fine_mine", "fine_class", "fine_broken"):
        sys.modules.pop(module, None)


def test_listing_a_table_brings_the_parts_of_installed_packages(site: Path) -> None:
    install(site, "a = fine_mine\nb = fine_class:Plain", fine_mine=MINE, fine_class=CLASS)
    with isolated():
        assert "installed" in list(positions)
        assert norms["plain"].__module__ == "fine_class"


def test_a_name_that_is_not_known_brings_them_too_and_a_known_one_does_not(site: Path) -> None:
    install(site, "a = fine_mine", fine_mine=MINE)
    with isolated():
        assert positions["rope"].__name__ == "RoPE"
        assert "fine_mine" not in sys.modules
        assert positions["installed"].__module__ == "fine_mine"


@pytest.mark.parametrize(
    ("entry", "text", "said"),
    [
        ("fine_mine", "import nothing_of_that_name", "No module named 'nothing_of_that_name'"),
        ("fine_mine", "1 / 0", "line 1: ZeroDivisionError"),
        ("fine_missing", MINE, "no module named 'fine_missing'"),
        ("fine_mine", MINE.replace('"installed"', '"rope"'), "two classes claim the position name"),
        ("fine_mine:Nothing", CLASS, "has no attribute 'Nothing'"),
        ("fine_mine:number", CLASS, "is no class; got 3"),
    ],
)
def test_a_broken_package_is_told_with_its_entry_point_each_time(
    site: Path, entry: str, text: str, said: str
) -> None:
    install(site, f"broken = {entry}", fine_mine=text)
    with isolated():
        for _ in range(2):
            with pytest.raises(ConfigError) as caught:
                list(positions)
            message = str(caught.value)
            assert f"installed package fine-parts 1.2, entry point 'broken' = '{entry}'" in message
            assert said in message


def test_a_broken_package_leaves_the_others_usable(site: Path) -> None:
    install(site, "a = fine_broken\nb = fine_mine", fine_mine=MINE, fine_broken="1 / 0")
    with isolated():
        with pytest.raises(ConfigError):
            list(positions)
        assert positions["installed"].__module__ == "fine_mine"


def test_the_commands_list_them(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(site, "a = fine_mine", fine_mine=MINE)
    with isolated(), pytest.raises(SystemExit):
        main(["list", "position"])
    assert "  installed " in capsys.readouterr().out


def test_the_commands_name_a_broken_one(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(site, "a = fine_mine", fine_mine="1 / 0")
    with pytest.raises(SystemExit) as end:
        main(["list"])
    shown = capsys.readouterr()
    assert (end.value.code, shown.out) == (2, "")
    assert "error: installed package fine-parts 1.2" in shown.err
