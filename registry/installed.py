"""Parts of installed packages: each announces the module that registers them.

In the package's `pyproject.toml`:

    [project.entry-points."encoder_sandbox.parts"]
    mine = "my_package.parts"              # registers with @register
    other = "my_package.more:MyPosition"   # or names one class

They are imported when a table is listed, or asked for a name that it does not know.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from registry.plugins import load
from registry.problems import ConfigError, Problem
from registry.table import DuplicateNameError, register

GROUP = "encoder_sandbox.parts"


def load_installed() -> None:
    """Import what every installed package announces.

    Raises:
        ConfigError: If some cannot be imported; each is named, the others are there all the same.
    """
    problems: list[Problem] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.value, entry.name)):
        try:
            _load(entry)
        except (ConfigError, DuplicateNameError, TypeError, AttributeError) as error:
            problems.append(Problem(_origin(entry), f"its parts cannot be used: {error}"))
    if problems:
        raise ConfigError(problems)


def _load(entry: EntryPoint) -> None:
    load(entry.module)
    if entry.attr:
        part: Any = entry.load()
        if not isinstance(part, type):
            raise TypeError(f"{entry.value} is no class; got {part!r}")
        register(part)


def _origin(entry: EntryPoint) -> str:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed package"
    return f"installed package {package}, entry point {entry.name!r} = {entry.value!r}"
