"""The face of a package: its classes by name, each imported when it is asked for."""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def face(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package (PEP 562) that imports nothing by itself.

    Each file of the package may hold a part: the class whose `name` is the file's stem. A new
    file joins by being there.

    Args:
        package: Its name.
        homes: What its modules offer besides parts, such as {"position": ["Position"]}.
    """
    named = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name == "__all__":
            return names()
        home = named.get(name) or (None if name[0] == "_" else _parts(package).get(name))
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{home}"), name)

    def names() -> list[str]:
        return sorted({*named, *_parts(package)})

    return get, names


def _parts(package: str) -> dict[str, str]:
    """The file stem of each part's class, read from the files' text."""
    spec = find_spec(package)
    assert spec is not None
    folders = map(Path, spec.submodule_search_locations or [])
    files = sorted(file for folder in folders for file in folder.glob("[!_]*.py"))
    found = {_part_of(file.read_text(encoding="utf-8"), file.stem): file.stem for file in files}
    return {name: stem for name, stem in found.items() if name}


def _part_of(text: str, stem: str) -> str | None:
    says = re.search(rf"""^    name(?:: [^=\n]+)? = ["']{stem}["']""", text, re.MULTILINE)
    if says is None:
        return None
    return re.findall(r"^class (\w+)", text[: says.start()], re.MULTILINE)[-1]
