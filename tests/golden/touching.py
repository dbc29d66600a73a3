"""Which files a run executes, and which of them change its code hash when they are touched.

    python -m tests.golden.touching STUDY_FILE ROOT...

Touches the files below the roots, one after the other, so the roots must be copies. Prints JSON:
the files that the first run of the study executes, those of them whose code may change without
another hash, and those whose comments or docstrings may not.
"""

import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from tests.golden.replay import code_hashes, first_run

CODE, COMMENT = "\n_touched = 1\n", "\n# touched\n"
COMMENTED = 8
"""In so many files comments and docstrings are touched as well, evenly spread."""


def executed(file: Path, roots: Sequence[Path]) -> list[str]:
    """The files below the roots of which the first run executes a function."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            found.add(frame.f_code.co_filename)

    run = first_run(file)
    sys.setprofile(note)
    run()
    sys.setprofile(None)
    paths = [Path(name).resolve() for name in found if name.endswith(".py")]
    return sorted(str(p) for p in paths if any(p.is_relative_to(root) for root in roots))


def apart(work: Callable[[], Any]) -> Any:
    """What a function returns in a process of its own, which remembers nothing of others."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        with os.fdopen(theirs, "w") as out:
            json.dump(work(), out)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return json.loads(told)


def touched(path: Path, change: Callable[[str], str], file: Path) -> list[str | None]:
    """The code hashes of a study with a file changed, which is then as it was."""
    before = path.read_text(encoding="utf-8")
    path.write_text(change(before), encoding="utf-8")
    try:
        return apart(lambda: code_hashes(file))
    finally:
        path.write_text(before, encoding="utf-8")


def said_otherwise(text: str) -> str:
    """A module with another docstring and a further comment."""
    return text.replace('"""', '"""Touched. ', 1) + COMMENT


def main(file: Path, roots: Sequence[Path]) -> None:
    """Touch, and print what came of it."""
    for name in ("registry", "store", "studies", "variants"):
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    now = apart(lambda: code_hashes(file))
    files = [Path(name) for name in apart(lambda: executed(file, roots))]
    some = files[:: max(1, len(files) // COMMENTED)]
    told = {
        "executed": files,
        "unseen": [p for p in files if touched(p, lambda text: text + CODE, file) == now],
        "commented": [p for p in some if touched(p, said_otherwise, file) != now],
    }
    print(json.dumps(told, default=str))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(one).resolve() for one in sys.argv[2:]])
