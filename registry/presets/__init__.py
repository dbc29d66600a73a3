"""Ready architectures: one YAML file each, which begins with its source and what differs from it.

>>> names()[:3]
['bert_style', 'gpt_style', 'kazemnejad_2023']
"""

from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

from registry.errors import ConfigError, Problem, UnknownNameError
from registry.yaml_file import read_yaml

FOLDER = Path(__file__).parent
KEY = "preset"
"""The key of a config that names a preset, over which its other keys lie."""


def names() -> list[str]:
    """The names of the presets."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def file_of(name: str) -> Path:
    """The file of a preset.

    Raises:
        UnknownNameError: If there is none; the nearest are named.
    """
    if name not in names():
        raise UnknownNameError(KEY, name, names())
    return FOLDER / f"{name}.yaml"


def about(name: str) -> str:
    """What the file of a preset says before its first key: what it is, its source, what differs.

    Raises:
        UnknownNameError: If there is no such preset.
    """
    lines = file_of(name).read_text(encoding="utf-8").splitlines()
    comment = takewhile(lambda line: line.startswith("#"), lines)
    return "\n".join(line.removeprefix("#").removeprefix(" ") for line in comment)


def expanded(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config with the keys of the preset that it names under its own.

    A mapping without a name changes single options of the preset's part; all else replaces.

    Raises:
        ConfigError: If there is no such preset.
    """
    own = {key: value for key, value in config.items() if key != KEY}
    if KEY not in config:
        return own
    name = config[KEY]
    if not isinstance(name, str):
        raise ConfigError([Problem(KEY, f"a preset is a name; got {name!r}", name, tuple(names()))])
    try:
        below = read_yaml(file_of(name))
    except UnknownNameError as error:
        raise ConfigError([error.problem(KEY)]) from None
    return {**below, **{key: _over(below.get(key), value) for key, value in own.items()}}


def _over(below: Any, value: Any) -> Any:
    if not isinstance(value, Mapping) or "name" in value:
        return cast(Any, value)
    below = {"name": below} if isinstance(below, str) else below
    if not isinstance(below, Mapping):
        return cast(Any, value)
    return {**cast(Mapping[str, Any], below), **cast(Mapping[str, Any], value)}
