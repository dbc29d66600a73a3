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

    An option that some configs lack varies, and is None where it lacks.
    """
    leaves = {key: flatten(config) for key, config in configs.items()}
    names = sorted({name for flat in leaves.values() for name in flat})
    kept = [name for name in names if len({_key(flat, name) for flat in leaves.values()}) > 1]
    return {key: {name: flat.get(name) for name in kept} for key, flat in leaves.items()}


def _key(flat: Mapping[str, Any], name: str) -> str:
    # By type as well, so that 1, 1.0 and True stay three values.
    return f"{type(flat[name]).__name__}:{flat[name]!r}" if name in flat else "absent"
