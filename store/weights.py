"""Files of weights beside a database: how they are named, written, read and looked after."""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from sqlalchemy import URL, make_url, select
from sqlalchemy.orm import Session

from store.database import shown
from store.errors import StoreError
from store.files import HALF, replacing, sha256, sha256_of, writing
from store.models import ModelRow, RunRow, now
from store.records import Claim, Fault, Model

SUFFIX = ".safetensors"
OF_RUN = re.compile(r"\.?run-(\d+)-")


class ModelFiles:
    """The weights of a database's runs: beside `sandbox.db`, in the folder `sandbox.db-models`.

    A server's are in the current folder. Paths in the tables are seen from `home`, so that
    database and folder can be moved together.
    """

    def __init__(self, url: str | URL) -> None:
        parsed = make_url(url)
        on_disk = parsed.get_backend_name() == "sqlite"
        file = Path(shown(parsed) if on_disk else parsed.database or "database")
        self.home = file.parent if on_disk else Path()
        self.folder = self.home / f"{file.name}-models"

    def write(self, claim: Claim, content: bytes) -> Model:
        """Write the weights of a claimed run to a file of their own: all of them, or nothing."""
        # The start tells apart attempts of one number, such as those of another database that had
        # this one's name before.
        started = (claim.run.started_at or now()).strftime("%Y%m%dT%H%M%SZ")
        name = f"run-{claim.run.id}-attempt-{claim.attempt}-{started}{SUFFIX}"
        target = self.folder / name
        with writing(target):
            self.folder.mkdir(exist_ok=True)
        with replacing(target) as beside, beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        path = target.relative_to(self.home).as_posix()
        return Model(claim.run.id, path, sha256(content), len(content), now())

    def read(self, model: Model) -> bytes:
        """The content of a file, which is what was saved.

        Raises:
            StoreError: If it is not there any more, or another than was saved.
        """
        path = self.home / model.path
        try:
            content = path.read_bytes()
        except OSError as error:
            raise StoreError(f"{path}, the weights of run {model.run_id}, is not there") from error
        found = sha256(content)
        if found != model.sha256:
            raise StoreError(
                f"checksum mismatch for {path} (run {model.run_id}): "
                f"expected {model.sha256[:12]}…, found {found[:12]}…"
            )
        return content

    def remove(self, path: str) -> None:
        """Remove a file of this folder; one elsewhere is not ours to remove."""
        place = self.home / path
        if place.parent.resolve() == self.folder.resolve():
            place.unlink(missing_ok=True)

    def remove_halves(self, running: Collection[int]) -> None:
        """Remove what workers that were killed left half written; not that of `running` runs."""
        for half in self.folder.glob(f".*{HALF}"):
            if _run_of(half) not in running:
                half.unlink(missing_ok=True)

    def faults(self, session: Session) -> Iterator[Fault]:
        """Name the files that are missing, changed, half written, or of no run."""
        known: set[Path] = set()
        for row in session.scalars(select(ModelRow).order_by(ModelRow.run_id)):
            known.add((self.home / row.path).resolve())
            fault = _fault(row, self.home / row.path)
            if fault is not None:
                yield Fault("model", f"model of run {row.run_id}", fault)
        running = set(session.scalars(select(RunRow.id).where(RunRow.status == "running")))
        for file in sorted(self.folder.glob("*")):
            if file.resolve() in known or _run_of(file) in running:
                continue
            half = "is half of a file, left by a worker that was killed; the study removes it"
            whole = "is the file of no run that is stored; it can be deleted"
            yield Fault("orphan", str(file), half if file.suffix == HALF else whole)


def _run_of(file: Path) -> int | None:
    found = OF_RUN.match(file.name)
    return None if found is None else int(found[1])


def _fault(row: ModelRow, path: Path) -> str | None:
    """Say what is wrong with a file of weights."""
    if not path.is_file():
        return f"{path} is not there"
    if path.stat().st_size != row.size_bytes:
        return f"{path} has {path.stat().st_size} bytes, not {row.size_bytes}"
    return f"{path} is another file than was saved" if sha256_of(path) != row.sha256 else None
