"""Settings from the command line: `dotted.key=value`, laid over a config."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from registry.problems import ConfigError, Problem
from registry.yaml_file import parse_yaml


def with_settings(config: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The config with settings laid over it; later ones win.

    A name on the way, such as `rope` for `position.theta`, becomes a mapping with that name.

    Args:
        config: Plain data.
        settings: Each "dotted.key=value", the value in YAML.

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
            raise ConfigError(problem.under(key.strip()) for problem in error.problems) from None
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
