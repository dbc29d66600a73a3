"""Do the stored hashes still fit what they stand for?"""

import hashlib
import json
from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.answers import Problem
from store.rows import ComponentRow, ConfigRow, EnvironmentRow, ProtocolRow
from store.values import fingerprint


def wrong_hashes(session: Session) -> Iterator[Problem]:
    """Name the environments, configs, protocols and parts whose hash does not fit."""
    for row in session.scalars(select(EnvironmentRow)):
        if fingerprint(row.facts) != row.hash:
            yield _wrong(f"environment {row.id}")
    for number, digest, config in session.execute(
        select(ConfigRow.id, ConfigRow.hash, ConfigRow.config)
    ):
        if fingerprint(config) != digest:
            yield _wrong(f"config {number}")
    for row in session.scalars(select(ProtocolRow)):
        if fingerprint(row.protocol) != row.hash:
            yield _wrong(f"protocol {row.id} of {row.study}")
    yield from _parts(session)


def _wrong(place: str) -> Problem:
    return Problem("hash", place, "is not what its hash was taken of: it was changed since")


def _parts(session: Session) -> Iterator[Problem]:
    found: dict[str, dict[str, str]] = {}
    for row in session.scalars(select(ComponentRow)):
        found.setdefault(row.code_hash, {})[f"{row.kind} {row.name}"] = row.source_hash
    for code, parts in found.items():
        words = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        if not hashlib.sha256(words.encode()).hexdigest().startswith(code):
            yield _wrong(f"parts of source {code}")
