"""Fingerprints of source files that follow what they compute, not how they are written.

A fingerprint is that of the parsed code without docstrings, comments, positions and what is there
for type checkers alone. Changes after which the numbers are the same bit for bit are listed in
`unchanged.json`: groups of fingerprints, each of which stands for the first of its group.
"""

import ast
import hashlib
import json
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

UNCHANGED = Path(__file__).parent / "unchanged.json"


def hash_of_file(path: Path) -> str:
    """Return the fingerprint of a file, kept as long as its time and size stay.

    Raises:
        OSError: If it cannot be read.
    """
    stat = path.stat()
    return canonical(_hash_of_file(path, stat.st_mtime_ns, stat.st_size))


def hash_of_source(source: bytes) -> str:
    """Return the fingerprint of Python source; that of its bytes where it cannot be parsed."""
    digest = hashlib.sha256()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        digest.update(source)
    else:
        words: list[str] = []
        _spell(tree, words)
        digest.update("\n".join(words).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def canonical(fingerprint: str) -> str:
    """Return the first fingerprint known to give the same numbers; mostly the same one."""
    return _first_ones().get(fingerprint, fingerprint)


@cache
def _first_ones() -> dict[str, str]:
    groups = json.loads(UNCHANGED.read_text(encoding="utf-8"))["groups"]
    return {later: group["hashes"][0] for group in groups for later in group["hashes"]}


@lru_cache(maxsize=4096)
def _hash_of_file(path: Path, changed: int, size: int) -> str:
    return hash_of_source(path.read_bytes())


def _spell(node: ast.AST, words: list[str]) -> None:
    """Spell a node out, in words that are the same in every version of Python.

    Fields that are empty are left out: later versions have more of them.
    """
    words.append(type(node).__name__)
    for field, value in ast.iter_fields(node):
        if field in ("ctx", "kind", "type_comment", "type_ignores"):
            continue
        if isinstance(value, ast.AST):
            words.append(field)
            _spell(value, words)
        elif isinstance(value, list):
            _spell_list(node, field, cast(list[Any], value), words)
        elif value is not None:
            words.append(f"{field} {value!r}")
    words.append(")")


def _spell_list(node: ast.AST, field: str, values: Iterable[Any], words: list[str]) -> None:
    empty = isinstance(node, ast.JoinedStr)  # Python 3.12 has empty texts in f-strings
    kept = [value for value in values if not _says_nothing(value, empty)]
    if kept:
        words.append(field)
    for value in kept:
        if isinstance(value, ast.AST):
            _spell(value, words)
        else:
            words.append(repr(value))


def _says_nothing(node: Any, in_text: bool) -> bool:
    """Is this a docstring, a block for type checkers alone, or an empty piece of an f-string?"""
    match node:
        case ast.Constant("") if in_text:
            return True
        case ast.Expr(ast.Constant(str())):
            return True
        case ast.If(ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), _, []):
            return True
        case _:
            return False
