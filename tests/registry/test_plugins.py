"""Plug-ins: files and modules that register classes, and what they say when they fail."""

import hashlib
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

import registry
from registry import ConfigError
from registry.plugins import is_plugin, load, origin, source_hash
from variants.positions import Position, RoPE

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
    ("text", "said"),
    [
        ("\n\nvalue = 1 / 0", "line 3: ZeroDivisionError: division by zero"),
        ("def f():\n    raise KeyError('x')\nf()", "line 2: KeyError: 'x'"),
        ("\ndef f(:\n", "line 2: SyntaxError: "),
        ("import no_such_module", "line 1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit(0)", "line 1: SystemExit: 0"),
        (MINE.replace('"mine"', '"rope"'), "line 5: DuplicateNameError: two classes claim"),
        (MINE.replace("name =", "nome ="), "line 5: TypeError: a registered class says its name"),
    ],
)
def test_a_failure_is_told_with_file_line_and_error(tmp_path: Path, text: str, said: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(str(file))
    (problem,) = caught.value.problems
    assert problem.key == "import"
    assert f"{file}, {said}" in problem.rule
    assert caught.value.__cause__ is not None


def test_a_file_that_failed_can_be_mended_and_imported(tmp_path: Path) -> None:
    file = write(tmp_path, "raise ValueError")
    with pytest.raises(ConfigError, match="line 1: ValueError"):
        load(str(file))
    write(tmp_path, MINE + "# mended, and longer, so that no cached bytecode stands for it")
    load(str(file))
    assert "mine" in registry.positions


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("missing.py", "missing.py: no such file"),
        ("no_such_module", "no module named 'no_such_module'"),
        ("variants.no_such", "no module named 'variants.no_such'"),
        ("a b", "no module named 'a b'"),
        ("", "Empty module name"),
    ],
)
def test_what_does_not_exist_is_told(spec: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(spec)
    assert said in str(caught.value)


def test_a_bare_folder_registers_nothing_and_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare_folder").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"folder without an __init__\.py"):
        load("bare_folder")


def test_the_hash_of_a_class_is_that_of_its_file(tmp_path: Path) -> None:
    plugin = load(str(write(tmp_path, MINE)))
    assert source_hash(registry.positions["mine"]) == plugin.sha256
    code = Path(sys.modules[RoPE.__module__].__file__ or "").read_bytes()
    assert source_hash(RoPE) == hashlib.sha256(code).hexdigest()


def test_the_origin_of_a_class_leads_back_to_its_file(tmp_path: Path) -> None:
    plugin = load(str(write(tmp_path, MINE)))
    mine = registry.positions["mine"]
    assert origin(mine) == f"{plugin.file}:{mine.__qualname__}"
    assert origin(RoPE) == "variants.positions.rope:RoPE"


def interactive(body: str, qualname: str = "Mine") -> type:
    space: dict[str, Any] = {"__name__": "__console__"}
    exec(f"class {qualname}:\n    {body}", space)
    return space[qualname]


def test_a_class_typed_at_a_prompt_is_hashed_by_what_it_does() -> None:
    body = "size = 3\n    def f(self, x=1): return x in {'a', 'b', 'c'}"
    base = source_hash(interactive(body))
    assert source_hash(interactive(body)) == base
    others = [
        interactive(body, "Other"),
        interactive(body.replace("size = 3", "size = 4")),
        interactive(body.replace("x=1", "x=2")),
        interactive(body.replace("'c'", "'d'")),
        interactive(body.replace("x in", "x not in")),
    ]
    assert len({base, *map(source_hash, others)}) == 6


def test_that_hash_is_the_same_in_every_process() -> None:
    code = (
        "from registry.plugins import source_hash\n"
        "class A:\n    def f(self, x): return [y for y in 'ab' if x in {'a', 'b', 'c'}]\n"
        "print(source_hash(A))"
    )
    command = [sys.executable, "-c", code]
    shown = [
        subprocess.run(
            command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in "12"
    ]
    assert shown[0] == shown[1]


def test_our_parts_are_no_plugins_and_everything_else_is(tmp_path: Path) -> None:
    load(str(write(tmp_path, MINE)))
    assert not is_plugin(RoPE)
    assert is_plugin(registry.positions["mine"])
    assert is_plugin(interactive("pass"))
    assert is_plugin(type("Local", (Position,), {"__module__": "__main__"}))
