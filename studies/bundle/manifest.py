"""The manifest of a bundle: the sha256 of every file, as `sha256sum -c MANIFEST` reads it."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

NAME = "MANIFEST"


def write_manifest(folder: Path) -> None:
    """Name every file of a folder with its hash."""
    lines = [f"{digest_of(folder / name)}  {name}\n" for name in files_of(folder)]
    (folder / NAME).write_text("".join(lines), encoding="utf-8")


def wrong_files(folder: Path) -> Iterator[str]:
    """What a folder holds other than its manifest says, a line each.

    Raises:
        OSError: If there is no manifest.
    """
    told: dict[str, str] = {}
    for line in (folder / NAME).read_text(encoding="utf-8", errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        told[name] = digest
    there = set(files_of(folder))
    for name in sorted(told.keys() - there):
        yield f"{name}: is in {NAME} and not in the folder"
    for name in sorted(there - told.keys()):
        yield f"{name}: is in the folder and not in {NAME}"
    for name in sorted(there & told.keys()):
        if digest_of(folder / name) != told[name]:
            yield f"{name}: is another file than {NAME} says"


def files_of(folder: Path) -> list[str]:
    """The files of a folder but for the manifest, as paths seen from it."""
    found = (file for file in folder.rglob("*") if file.is_file())
    names = (file.relative_to(folder).as_posix() for file in found)
    return sorted(name for name in names if name != NAME)


def digest_of(file: Path) -> str:
    """The sha256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
