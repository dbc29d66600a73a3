"""Do the stored hashes still fit what they stand for?"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.answers import Problem
from store.rows import ComponentRow, ConfigRow, EnvironmentRow, ModelRow, ProtocolRow
from store.values import fingerprint

BLOCK = 1 << 20


def wrong_hashes(session: Session, folder: Path) -> Iterator[Problem]:
    """Name the environments, configs, protocols, parts and models whose hash does not fit.

    Paths of models are relative to `folder`, where the database is.
    """
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
    for row in session.scalars(select(ModelRow)):
        yield from _model(row, folder)


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


def _model(row: ModelRow, folder: Path) -> Iterator[Problem]:
    path, place = folder / row.path, f"model of run {row.run_id}"
    if not path.is_file():
        yield Problem("model", place, f"{path} is not there")
    elif path.stat().st_size != row.size_bytes:
        yield Problem(
            "model", place, f"{path} has {path.stat().st_size} bytes, not {row.size_bytes}"
        )
    elif _sha256(path) != row.sha256:
        yield Problem("model", place, f"{path} is another file than was saved")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
