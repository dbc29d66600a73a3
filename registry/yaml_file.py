"""YAML 1.2, read safely: `1e-4` is a float, `no` is text, a key said twice is an error."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from registry.problems import ConfigError, Problem, mapping


def read_yaml(path: Path) -> Mapping[str, Any]:
    """The mapping in a YAML file; an empty file holds none.

    Raises:
        ConfigError: If the file cannot be read, is not YAML, or holds no mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        rule = f"cannot be read ({getattr(error, 'strerror', None) or error})"
        raise ConfigError([Problem("", rule, file=str(path))]) from None
    return parse_mapping(text, str(path))


def parse_mapping(text: str, file: str) -> Mapping[str, Any]:
    """The mapping that a YAML text holds; an empty text holds none.

    Raises:
        ConfigError: If it is not YAML, or no mapping; it names the file.
    """
    try:
        value = parse_yaml(text)
        return mapping({} if value is None else value)
    except ConfigError as error:
        raise ConfigError(problem.under("", file) for problem in error.problems) from None


def parse_yaml(text: str) -> Any:
    """The value of a YAML text.

    Raises:
        ConfigError: If it is not YAML.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(text)  # pyright: ignore[reportUnknownMemberType]
    except YAMLError as error:
        said = " ".join(str(error).split())
        raise ConfigError([Problem("", f"not valid YAML: {said}", text)]) from None
