"""Plug-ins: files and modules that register classes, and what they say when they fail."""

import hashlib
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import registry
from registry import ConfigError
from registry.plugins import load
from tests.messages import Messages

MINE = """
from registry import register
from variants.positions import Position

@register
class Mine(Position):
    name = "mine"
"""


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_a_file_registers_its_classes(tmp_path: Path) -> None:
    file = write(tmp_path, MINE)
    plugin = load(str(file))
    assert registry.positions["mine"].__module__ == plugin.module
    assert sys.modules[plugin.module].__file__ == plugin.file == str(file)
    assert plugin.sha256 == hashlib.sha256(MINE.encode()).hexdigest()
    assert plugin.spec == str(file)
    with pytest.raises(FrozenInstanceError):
        plugin.spec = ""  # pyright: ignore[reportAttributeAccessIssue]


def test_a_file_is_run_once_however_its_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, MINE)
    monkeypatch.chdir(tmp_path)
    first = load("mine.py")
    assert load(str(file)) is first
    assert load("./mine.py") is first
    write(tmp_path, "raise RuntimeError")
    assert load("mine.py") is first


def test_files_of_one_name_in_two_folders_are_two_plugins(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one = load(str(write(tmp_path, "value = 1", "my-part.py")))
    other = load(str(write(tmp_path / "other", "value = 2", "my-part.py")))
    assert one.module != other.module
    assert [sys.modules[each.module].value for each in (one, other)] == [1, 2]


def test_a_module_is_imported_by_its_dotted_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_package").mkdir()
    write(tmp_path / "my_package", "", "__init__.py")
    file = write(tmp_path / "my_package", MINE.replace('"mine"', '"packed"'), "parts.py")
    monkeypatch.syspath_prepend(tmp_path)
    plugin = load("my_package.parts")
    assert (plugin.module, plugin.file) == ("my_package.parts", str(file))
    assert load("my_package.parts") is plugin
    assert "packed" in registry.positions


def test_a_file_may_come_by_path_and_by_module_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, MINE, "come_twice.py")
    monkeypatch.syspath_prepend(tmp_path)
    load(str(file))
    load("come_twice")
    assert registry.positions["mine"].__module__ == "come_twice"


@pytest.mark.parametrize(
    "text",
    [
        "\n\nvalue = 1 / 0",
        "def f():\n    raise KeyError('x')\nf()",
        "\ndef f(:\n",
        "import no_such_module",
        "raise SystemExit(0)",
        MINE.replace('"mine"', '"rope"'),
        MINE.replace("name =", "nome ="),
    ],
)
def test_a_failure_is_told_with_file_line_and_error(
    messages: Messages, tmp_path: Path, text: str
) -> None:
    file = write(tmp_path, text)
    with messages.raises(ConfigError) as caught:
        load(str(file))
    (problem,) = caught.value.problems
    assert problem.key == "import"
    assert f"{file}, line " in problem.rule
    assert caught.value.__cause__ is not None


def test_a_file_that_failed_can_be_mended_and_imported(tmp_path: Path) -> None:
    file = write(tmp_path, "raise ValueError")
    with pytest.raises(ConfigError, match="line 1: ValueError"):
        load(str(file))
    write(tmp_path, MINE + "# mended, and longer, so that no cached bytecode stands for it")
    load(str(file))
    assert "mine" in registry.positions


@pytest.mark.parametrize("spec", ["missing.py", "no_such_module", "variants.no_such", "a b", ""])
def test_what_does_not_exist_is_refused(messages: Messages, spec: str) -> None:
    with messages.raises(ConfigError):
        load(spec)


def test_a_bare_folder_registers_nothing_and_is_refused(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare_folder").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with messages.raises(ConfigError):
        load("bare_folder")
