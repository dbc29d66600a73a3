"""A fingerprint of source follows what it computes, not how it is written."""

import json
from pathlib import Path

import pytest

from store import source_code
from store.source_code import canonical, hash_of_file, hash_of_source

BEFORE = b'''"""A module."""

from typing import TYPE_CHECKING

SIZE = 3
"""Its size."""


def f(x):
    """Twice."""
    return 2 * x
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"A module.", b"Another sentence."),
        (b"Its size.", b"How large it is."),
        (b'    """Twice."""\n', b""),
        (b"SIZE = 3", b"# why\nSIZE  =  3  # so"),
        (b"\n\n\ndef", b"\n\nif TYPE_CHECKING:\n    from a import B\n\n\ndef"),
        (b"2 * x", b"(2 *\n            x)"),
        (b"\n", b"\r\n"),
    ],
)
def test_how_it_is_written_does_not_count(old: bytes, new: bytes) -> None:
    assert old in BEFORE
    assert hash_of_source(BEFORE.replace(old, new)) == hash_of_source(BEFORE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"SIZE = 3", b"SIZE = 3.0"),
        (b"2 * x", b"x * 2"),
        (b"f(x)", b"f(x, y=1)"),
        (b"def", b"async def"),
    ],
)
def test_what_it_computes_does(old: bytes, new: bytes) -> None:
    assert old in BEFORE
    assert hash_of_source(BEFORE.replace(old, new)) != hash_of_source(BEFORE)


def test_what_is_no_code_is_told_by_its_bytes() -> None:
    assert (
        len({hash_of_source(text) for text in (b"first", b"second", b"no (code", b"no (code ")})
        == 4
    )


def test_a_known_fingerprint_is_the_same_in_every_version_of_python() -> None:
    assert hash_of_source(BEFORE)[:16] == "5c9bc44a59ab5909"


def test_a_file_is_read_again_once_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "part.py"
    file.write_bytes(BEFORE)
    assert hash_of_file(file) == hash_of_source(BEFORE)
    file.write_bytes(BEFORE + b"MORE = 1\n")
    assert hash_of_file(file) != hash_of_source(BEFORE)


def test_sources_that_give_the_same_numbers_have_one_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = BEFORE.replace(b"2 * x", b"x + x")
    hashes = [hash_of_source(BEFORE), hash_of_source(later)]
    listed = tmp_path / "unchanged.json"
    listed.write_text(json.dumps({"groups": [{"module": "part", "hashes": hashes}]}))
    file = tmp_path / "part.py"
    file.write_bytes(later)
    assert hash_of_file(file) == hashes[1]
    monkeypatch.setattr(source_code, "UNCHANGED", listed)
    source_code._first_ones.cache_clear()
    assert hash_of_file(file) == hashes[0]
    assert canonical("another") == "another"
    source_code._first_ones.cache_clear()


def test_the_list_that_ships_is_one_of_groups_of_fingerprints() -> None:
    groups = json.loads(source_code.UNCHANGED.read_text())["groups"]
    hashes = [one for group in groups for one in group["hashes"]]
    assert len(set(hashes)) == len(hashes)
    assert all(group["module"] and len(group["hashes"]) > 1 for group in groups)
