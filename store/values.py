"""Which values may be stored: plain Python only, so that every reader sees the same thing."""

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from typing import Any, cast

from store.errors import StoreError

type_names = "text, numbers, true, false, null, lists and mappings with text keys"


def plain(value: object, at: str = "value") -> object:
    """Return the value in types that JSON knows, or refuse it.

    NumPy scalars become Python numbers and tuples become lists. JSON has no word for a number
    that is not finite, so nan and the infinities become the text "nan", "inf" and "-inf".
    `at` names the value in the error.

    Raises:
        StoreError: If the value, or one inside it, is an array, a tensor or another object.
    """
    value = unwrap_numpy(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else finiteness(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return _plain_mapping(cast("Mapping[object, object]", value), at)
    if isinstance(value, list | tuple):
        items = cast("list[object] | tuple[object, ...]", value)
        return [plain(item, f"{at}[{index}]") for index, item in enumerate(items)]
    raise StoreError(
        f"{at} is of type {type(value).__module__}.{type(value).__qualname__}, "
        f"which cannot be stored; use {type_names}"
    )


def plain_dict(value: Mapping[str, object], at: str) -> dict[str, object]:
    """Return a mapping in types that JSON knows; see `plain`."""
    return _plain_mapping(cast("Mapping[object, object]", value), at)


def fingerprint(data: object) -> str:
    """Return the sha256 of plain data, the same for equal data whatever the order of its keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def split_number(value: object, at: str) -> tuple[float | None, str | None]:
    """Split a number into what a database column can hold and a word for what it cannot.

    Returns (value, None) when it is finite, else (None, "nan" | "inf" | "-inf"); None stays None.

    Raises:
        StoreError: If the value is not a number.
    """
    if type(value) is float and math.isfinite(value):
        return value, None
    value = unwrap_scalar(value)
    if value is None:
        return None, None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StoreError(
            f"{at} must be a number; got {type(value).__module__}.{type(value).__qualname__}"
        )
    number = float(value)
    return (number, None) if math.isfinite(number) else (None, finiteness(number))


def plain_int(value: object, at: str) -> int:
    """Return a whole number as int.

    Raises:
        StoreError: If the value is not a whole number or needs more than 64 bits.
    """
    if type(value) is not int:
        value = unwrap_scalar(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise StoreError(f"{at} must be a whole number; got {value!r:.80}")
    if not -(2**63) <= value < 2**63:
        raise StoreError(f"{at} must fit in 64 bits; got {value}")
    return value


def unwrap_numpy(value: object) -> object:
    """Return the Python number or text inside a NumPy scalar, and anything else as it is."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return cast("Any", value).item()
    return value


def unwrap_scalar(value: object) -> object:
    """Return the Python number in an array or tensor without axes, and anything else as it is.

    A metric may come as one, such as `(a == b).float().mean()`; a trained run is not lost for it.
    """
    if getattr(value, "ndim", None) == 0:
        return cast("Any", value).item()
    return value


def finiteness(value: float) -> str:
    """Return the word for a number that is not finite: "nan", "inf" or "-inf"."""
    return str(float(value))


def _plain_mapping(value: Mapping[object, object], at: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise StoreError(f"{at} has the key {key!r}; keys must be text")
        found[str.__str__(key)] = plain(item, f"{at}.{key}")
    return found
