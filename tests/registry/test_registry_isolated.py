"""`isolated`: what is registered inside is forgotten afterwards."""

import sys
from pathlib import Path

import pytest

from registry import Registry, isolated, positions, register
from registry.plugins import load
from registry.registry import REGISTRIES, registry_of
from variants.positions import Position, RoPE

MINE = """
from registry import Registry, register
from variants.positions import Position

@register
class Mine(Position):
    name = "mine"
"""


def own(name: str = "mine") -> type[Position]:
    return type("Mine", (Position,), {"name": name, "__module__": __name__})


def test_what_is_registered_inside_is_forgotten() -> None:
    outer = register(own("outer"))
    with isolated():
        register(own())
        assert "mine" in positions
    assert "mine" not in positions
    assert positions["outer"] is outer


def test_what_is_replaced_or_discarded_inside_comes_back() -> None:
    first = register(own())
    with isolated():
        assert register(own()) is positions["mine"] is not first
    assert positions["mine"] is first
    with isolated():
        positions.discard("mine")
    assert positions["mine"] is first


def test_a_table_that_announces_itself_inside_goes_with_what_came_in() -> None:
    with isolated():
        Registry("colour", "colours", "variants.norms.norm:Norm", "variants.norms")
        assert registry_of("colour").plural == "colours"
    assert "colour" not in REGISTRIES
    assert registry_of("position") is positions


def test_an_error_inside_passes_and_the_tables_are_restored() -> None:
    def fail() -> None:
        with isolated():
            register(own())
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert "mine" not in positions


def test_a_file_that_was_imported_inside_registers_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    for _ in range(2):
        with isolated():
            plugin = load(str(file))
            assert positions["mine"].__module__ == plugin.module
        assert "mine" not in positions
        assert plugin.module not in sys.modules


def test_modules_that_were_there_before_stay() -> None:
    with isolated():
        register(own())
    assert sys.modules[__name__].__name__ == __name__
    assert positions["rope"] is RoPE
