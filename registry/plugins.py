"""Plug-ins: Python files and modules of the user that register classes of their own."""

import hashlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from types import ModuleType
from typing import Any

from registry.errors import ConfigError, DuplicateNameError, Problem

OURS = frozenset({"variants", "registry", "studies", "store"})


@dataclass(frozen=True)
class Plugin:
    """An imported plug-in.

    Args:
        spec: What was asked for: the path of a `.py` file, or a dotted module.
        module: The name under which it is in `sys.modules`.
        file: Its absolute path.
        sha256: Fingerprint of the file as it was when it was imported.
    """

    spec: str
    module: str
    file: str
    sha256: str


def load(spec: str) -> Plugin:
    """Import a plug-in; what is imported already is not run again.

    Args:
        spec: The path of a `.py` file, or a dotted module.

    Raises:
        ConfigError: If there is no such file or module, or it fails while it is imported; the
            message names the file, the line and what went wrong.
    """
    name = _name_of_file(spec) if spec.endswith(".py") else spec
    module = sys.modules.get(name) or _import(spec, name)
    known = getattr(module, "__plugin__", None)
    if isinstance(known, Plugin):
        return known
    if not getattr(module, "__file__", None):
        raise _refused(spec, "is a folder without an __init__.py, so it registers nothing")
    file = Path(str(module.__file__)).resolve()
    plugin = Plugin(spec, name, str(file), hashlib.sha256(file.read_bytes()).hexdigest())
    module.__dict__["__plugin__"] = plugin
    return plugin


def _name_of_file(spec: str) -> str:
    """A name that two files share only if they are one."""
    path = Path(spec).expanduser().resolve()
    code = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    return re.sub(r"\W", "_", path.stem) + f"_{code}"


def _import(spec: str, name: str) -> ModuleType:
    try:
        return _run_file(spec, name) if spec.endswith(".py") else importlib.import_module(name)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        lacks = error.name if isinstance(error, ModuleNotFoundError) else None
        if lacks and f"{name}.".startswith(f"{lacks}."):
            raise _refused(spec, f"no module named {lacks!r}") from None
        raise _refused(spec, _failure(error)) from error


def _run_file(spec: str, name: str) -> ModuleType:
    path = Path(spec).expanduser().resolve()
    if not path.is_file():
        raise _refused(spec, "no such file")
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _refused(spec: str, rule: str) -> ConfigError:
    return ConfigError([Problem("import", f"{spec}: {rule}", spec)])


def _failure(error: BaseException) -> str:
    """What went wrong, with the last line of the plug-in's own file that led there."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: SyntaxError: {error.msg}"

    def imports(frame: traceback.FrameSummary) -> bool:
        return frame.filename.startswith("<frozen importlib")

    frames = traceback.extract_tb(error.__traceback__)
    ran = list(dropwhile(imports, dropwhile(lambda frame: not imports(frame), frames)))
    own = [frame for frame in ran if frame.filename == ran[0].filename]
    place = f"{own[-1].filename}, line {own[-1].lineno}: " if own else ""
    return f"{place}{type(error).__name__}: {error}"


GROUP = "encoder_sandbox.parts"
"""Entry points by which installed packages announce their parts, in their `pyproject.toml`:

    [project.entry-points."encoder_sandbox.parts"]
    mine = "my_package.parts"              # registers with @register
    other = "my_package.more:MyPosition"   # or names one class
"""


def load_installed(register: Callable[[type], object]) -> None:
    """Import what every installed package announces; `register` enters a class named by itself.

    Raises:
        ConfigError: If some cannot be imported; each is named, the others are there all the same.
    """
    from importlib.metadata import entry_points

    problems: list[Problem] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.value, entry.name)):
        try:
            load(entry.module)
            if entry.attr:
                part: Any = entry.load()
                if not isinstance(part, type):
                    raise TypeError(f"{entry.value} is no class; got {part!r}")
                register(part)
        except (ConfigError, DuplicateNameError, TypeError, AttributeError) as error:
            dist = entry.dist
            package = f"{dist.name} {dist.version}" if dist else "an unnamed package"
            place = f"installed package {package}, entry point {entry.name!r} = {entry.value!r}"
            problems.append(Problem(place, f"its parts cannot be used: {error}"))
    if problems:
        raise ConfigError(problems)
