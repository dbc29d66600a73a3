"""YAML 1.2, read safely: `1e-4` is a float, `no` is text, a key said twice is an error."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from registry.errors import ConfigError, Problem, mapping


def read_yaml(path: Path) -> Mapping[str, Any]:
    """The mapping in a YAML file; an empty file holds none.

    Raises:
        ConfigError: If the file cannot be read, is not YAML, or holds no mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        rule = f"cannot be read ({getattr(error, 'strerror', None) or error})"
        raise ConfigError([Problem("", rule, file=str(path), code="unreadable")]) from None
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
        raise error.under("", file) from None


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
        said, mark = " ".join(str(error).split()), getattr(error, "problem_mark", None)
        wrong = Problem("", f"not valid YAML: {said}", text, code="unreadable")
        if mark is not None:
            wrong = replace(wrong, line=mark.line + 1, column=mark.column + 1)
        raise ConfigError([wrong]) from None


def with_settings(config: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The config with settings laid over it; later ones win.

    Each is "dotted.key=value", the value in YAML. A name on the way, such as `rope` for
    `position.theta`, becomes a mapping with that name.

    Raises:
        ConfigError: If a setting has no key or its value is not YAML, or it enters a plain value.
    """
    changed = dict(config)
    for setting in settings:
        key, equals, text = setting.partition("=")
        path = key.strip().split(".")
        if not equals or not all(path):
            raise ConfigError([Problem("set", f"expected dotted.key=value; got {setting!r}")])
        try:
            value = parse_yaml(text)
        except ConfigError as error:
            raise error.under(key.strip()) from None
        _lay(changed, path, value, key)
    return changed


def _lay(config: dict[str, Any], path: list[str], value: Any, key: str) -> None:
    first, *rest = path
    if not rest:
        config[first] = value
        return
    inner = config.get(first, {})
    if isinstance(inner, str):
        inner = {"name": inner}
    if not isinstance(inner, Mapping):
        rule = f"cannot be set inside {first!r}, which is the plain value {inner!r}"
        raise ConfigError([Problem(key, rule, value)])
    config[first] = changed = dict(cast(Mapping[str, Any], inner))
    _lay(changed, rest, value, key)
