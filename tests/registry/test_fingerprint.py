"""Which files a computation rests on, and where its classes are from."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import registry
from registry import fingerprint
from registry.fingerprint import Module, closure, find, hash_of_class, is_ours, module_of, origin
from registry.plugins import load
from variants.positions import Position, RoPE

MINE = """
from registry import register
from variants.positions import Position

@register
class Mine(Position):
    name = "mine"
"""


def written(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        file = folder.joinpath(*name.split("__in__")[::-1]).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def names_behind(folder: Path, name: str, *beside: str) -> set[str]:
    """What a file of a plug-in rests on, besides itself."""
    root = Module(name, folder.joinpath(*name.split(".")).with_suffix(".py"))
    return set(closure(root, frozenset(beside)).values()) - {name}


def test_a_part_rests_on_its_contract_and_not_on_the_other_parts() -> None:
    found = set(closure(find("variants.positions.rope")).values())
    assert {"variants.positions.rope", "variants.positions.position", "variants.dims"} <= found
    assert not {"variants.positions", "variants.positions.alibi", "variants.encoder"} & found


def test_a_name_leads_through_a_lazy_face_to_the_module_that_defines_it(tmp_path: Path) -> None:
    written(
        tmp_path,
        mine="from variants import Dims\nfrom registry import build_encoder\n"
        "import variants.masks as m\nprint(m.Causal)\n",
    )
    found = names_behind(tmp_path, "mine")
    assert {"variants.dims", "registry.build", "variants.masks.causal"} <= found
    assert not {"variants", "registry", "variants.masks", "variants.masks.window"} & found


def test_what_a_package_only_looks_up_when_asked_is_found_in_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "variants"
    shutil.copytree(fingerprint.ROOT / "variants", copy)
    (copy / "positions" / "fresh.py").write_text("class Fresh:\n    name = 'fresh'\n")
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    written(tmp_path, mine="from variants.positions import Fresh\n")
    assert names_behind(tmp_path, "mine") == {"variants.positions.fresh"}


def test_imports_in_functions_count_and_those_for_type_checkers_do_not(tmp_path: Path) -> None:
    written(
        tmp_path,
        mine="from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from one import A\n"
        "def f():\n    import two\n    from importlib import import_module\n"
        "    return import_module('three')\n",
        one="",
        two="import four",
        three="",
        four="import one_more",
        one_more="",
    )
    assert names_behind(tmp_path, "mine") == {"two", "three", "four", "one_more"}


def test_helpers_of_a_package_count_and_what_its_init_shows_besides_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(
        tmp_path,
        __init____in__pack="from pack.other import Other\nfrom .helper import help_me\n",
        mine__in__pack="from . import help_me\nfrom .deep import third\n",
        helper__in__pack="from .second import x\n",
        second__in__pack="x = 1\n",
        other__in__pack="class Other: pass\n",
    )
    (tmp_path / "pack" / "deep").mkdir()
    (tmp_path / "pack" / "deep" / "third.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    expected = {"pack", "pack.helper", "pack.second", "pack.deep.third"}
    assert names_behind(tmp_path, "pack.mine") == expected


def test_what_is_installed_is_left_out(tmp_path: Path) -> None:
    written(tmp_path, mine="import json\nimport torch\nfrom torch import nn\nimport not_there\n")
    assert names_behind(tmp_path, "mine") == set()


def test_modules_can_be_left_out(tmp_path: Path) -> None:
    written(tmp_path, mine="import one\nimport two\n", one="import three", two="", three="")
    assert names_behind(tmp_path, "mine", "one") == {"two"}


def test_files_that_import_one_another_and_files_that_are_no_code_are_no_trouble(
    tmp_path: Path,
) -> None:
    written(tmp_path, mine="import one\nimport broken\n", one="import mine", broken="not (code")
    assert names_behind(tmp_path, "mine") == {"one", "broken"}


def test_the_answer_follows_changes_of_the_files(tmp_path: Path) -> None:
    written(tmp_path, mine="import one\n", one="", two="")
    assert names_behind(tmp_path, "mine") == {"one"}
    written(tmp_path, one="import two\n")
    assert names_behind(tmp_path, "mine") == {"one", "two"}


def test_a_question_asked_again_reads_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    first = closure(find("variants.encoder"))
    monkeypatch.setattr(fingerprint, "_walk", None)
    assert closure(find("variants.encoder")) is first


def test_a_class_has_the_module_that_defines_it(tmp_path: Path) -> None:
    assert module_of(RoPE) == find("variants.positions.rope")
    written(tmp_path, mine=MINE)
    load(str(tmp_path / "mine.py"))
    found = module_of(registry.positions["mine"])
    assert found is not None
    assert found.file == tmp_path / "mine.py"
    assert module_of(interactive("pass")) is None


def test_the_origin_of_a_class_leads_back_to_its_file(tmp_path: Path) -> None:
    written(tmp_path, mine=MINE)
    plugin = load(str(tmp_path / "mine.py"))
    mine = registry.positions["mine"]
    assert origin(mine) == f"{plugin.file}:{mine.__qualname__}"
    assert origin(RoPE) == "variants.positions.rope:RoPE"


def interactive(body: str, qualname: str = "Mine") -> type:
    space: dict[str, Any] = {"__name__": "__console__"}
    exec(f"class {qualname}:\n    {body}", space)
    return space[qualname]


def test_a_class_typed_at_a_prompt_is_hashed_by_what_it_does() -> None:
    body = "size = 3\n    def f(self, x=1): return x in {'a', 'b', 'c'}"
    base = hash_of_class(interactive(body))
    assert hash_of_class(interactive(body)) == base
    others = [
        interactive(body, "Other"),
        interactive(body.replace("size = 3", "size = 4")),
        interactive(body.replace("x=1", "x=2")),
        interactive(body.replace("'c'", "'d'")),
        interactive(body.replace("x in", "x not in")),
    ]
    assert len({base, *map(hash_of_class, others)}) == 6


def test_that_hash_is_the_same_in_every_process() -> None:
    code = (
        "from registry.fingerprint import hash_of_class\n"
        "class A:\n    def f(self, x): return [y for y in 'ab' if x in {'a', 'b', 'c'}]\n"
        "print(hash_of_class(A))"
    )
    command = [sys.executable, "-c", code]
    shown = [
        subprocess.run(
            command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in "12"
    ]
    assert shown[0] == shown[1]


def test_our_parts_are_ours_and_nothing_else_is(tmp_path: Path) -> None:
    written(tmp_path, mine=MINE)
    load(str(tmp_path / "mine.py"))
    assert is_ours(RoPE)
    assert is_ours("studies.measurements.numerics")
    assert not is_ours("my_package.studies")
    assert not is_ours(registry.positions["mine"])
    assert not is_ours(interactive("pass"))
    assert not is_ours(type("Local", (Position,), {"__module__": "__main__"}))
