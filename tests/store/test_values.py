"""What may be stored, and what is refused before anything is written."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from store import plain
from store.errors import StoreError
from tests.messages import Messages


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (None, None),
        (True, True),
        (np.bool_(True), True),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64(0.25), 0.25),
        (np.str_("a"), "a"),
        ((1, (2, "b")), [1, [2, "b"]]),
        ({"a": {"b": (np.int8(1),)}}, {"a": {"b": [1]}}),
        (math.nan, "nan"),
        ([math.inf, -np.float32("inf")], ["inf", "-inf"]),
        (10**30, 10**30),
    ],
)
def test_plain_values_are_what_json_knows(value: object, kept: object) -> None:
    found = plain(value)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    "value",
    [
        {"a": [0, np.zeros(2)]},
        np.array(1.0),
        {"a": {1, 2}},
        {"a": Path("x")},
        {"a": {1: 2}},
        b"x",
    ],
)
def test_other_values_are_refused_by_their_place(messages: Messages, value: Any) -> None:
    with messages.raises(StoreError):
        plain(value, "config")
