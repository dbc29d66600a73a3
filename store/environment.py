"""Facts about the machine, the packages and the source, kept with every run."""

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "encoder-sandbox",
    "torch",
    "numpy",
    "einops",
    "jaxtyping",
    "optuna",
    "sqlalchemy",
    "alembic",
    "pydantic",
    "ruamel.yaml",
    "scipy",
    "pandas",
)
GIT_SECONDS = 30


def environment_facts(extra: Mapping[str, object]) -> dict[str, Any]:
    """Return what is known about this machine and its packages, and `extra` beside it.

    A package that is not installed is left out.
    """
    return {
        "python": sys.version.split()[0],
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu": _cpu_model(Path("/proc/cpuinfo")),
        "cpu_count": os.cpu_count(),
        "host": platform.node(),
        "packages": _versions(PACKAGES),
        **extra,
    }


def git_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return commit, branch, whether tracked files differ, and the sha256 of that difference.

    Returns {"commit": None} outside git, before the first commit, and where git is missing.
    """
    commit = _git(path, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return {"commit": None}
    branch = _git(path, "rev-parse", "--abbrev-ref", "HEAD")
    difference = _git(path, "diff", "--no-ext-diff", "--no-textconv", "--binary", "HEAD")
    return {
        "commit": commit.decode().strip(),
        "branch": None if branch is None else branch.decode(errors="replace").strip(),
        "dirty": None if difference is None else bool(difference),
        "diff_sha256": hashlib.sha256(difference).hexdigest() if difference else None,
    }


def _versions(names: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _cpu_model(source: Path) -> str | None:
    if not source.exists():
        return platform.processor() or None
    text = source.read_text(encoding="utf-8", errors="replace")
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for name, _, value in lines if name.strip() == "model name"), None)


def _git(path: str | os.PathLike[str], *words: str) -> bytes | None:
    """Return what git prints, or None when it refuses, is missing or takes too long."""
    # Without optional locks git leaves the index alone, which another process may be writing.
    command = ["git", "--no-optional-locks", "-C", os.fspath(path), *words]
    try:
        done = subprocess.run(command, capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
