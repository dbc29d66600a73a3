"""Stored studies are read as ever: every code and number, on every surface.

The cases lie in `cases`, what is expected of them in `expected`; `python -m tests.golden.renew`
writes the latter anew. `replay` stores a case, `surface` asks and compares.
"""

import json
from pathlib import Path

import pytest

from tests.golden.renew import CASES, expected_of, told_of
from tests.golden.surface import differences

SHOWN = 40


@pytest.mark.parametrize("name", CASES)
def test_a_stored_study_is_read_as_expected(name: str, tmp_path: Path) -> None:
    expected = json.loads(expected_of(name).read_text(encoding="utf-8"))

    told = told_of(name, tmp_path)

    wrong = list(differences(expected, told))
    assert not wrong, "\n".join([f"{len(wrong)} differ in {name}:", *wrong[:SHOWN]])
