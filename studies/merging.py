"""Lay settings over settings."""

from collections.abc import Mapping
from typing import Any


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with what `above` says; a choice of another name replaces, the same one adds."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(value, Mapping):
            if isinstance(old, str) and "name" not in value and key not in ("encoder", "study"):
                old = {"name": old}
            other = "name" in value and name_of(old) != value["name"]
            merged[key] = (
                dict(value) if other or not isinstance(old, Mapping) else merge(old, value)
            )
        elif isinstance(value, str) and isinstance(old, Mapping) and name_of(old) == value:
            continue
        else:
            merged[key] = value
    return merged


def name_of(chosen: Any) -> Any:
    """The name in a choice, be it a plain name or a mapping with options."""
    return chosen.get("name") if isinstance(chosen, Mapping) else chosen
