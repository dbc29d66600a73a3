"""Config options under dotted keys, and which of them vary."""

from collections.abc import Mapping
from typing import Any, cast


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the leaves of a nested mapping under dotted keys; lists are leaves."""
    leaves: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            inner = cast("dict[str, Any]", value)
            leaves.update(flatten(inner, f"{prefix}{key}."))
        else:
            leaves[prefix + key] = value
    return leaves


def varying(configs: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return, for each id, the options that are not the same in every one of the configs.

    An option that a config lacks counts as None there.
    """
    leaves = {key: flatten(config) for key, config in configs.items()}
    names = sorted({name for flat in leaves.values() for name in flat})
    kept = [name for name in names if len({option_key(flat, name) for flat in leaves.values()}) > 1]
    return {key: {name: flat.get(name) for name in kept} for key, flat in leaves.items()}


def option_key(flat: Mapping[str, Any], name: str) -> str:
    """Return what tells two values of an option apart: 1, 1.0 and True are three values."""
    value = flat.get(name)
    return f"{type(value).__name__}:{value!r}"
