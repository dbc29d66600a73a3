"""Renew what is expected of the golden cases, from the code as it is now.

    python -m tests.golden.renew             # every case
    python -m tests.golden.renew diverged    # these cases alone

Read the difference with `git diff tests/golden/expected` before you keep it: every line of it is a
code or a number that users see change.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.golden.replay import replay
from tests.golden.surface import answers

HERE = Path(__file__).parent
CASES = {path.stem: path for path in sorted((HERE / "cases").glob("*.json"))}


def told_of(name: str, folder: Path) -> dict[str, Any]:
    """Replay a case in an empty folder; all that is said of it, as JSON gives it back."""
    case = json.loads(CASES[name].read_text(encoding="utf-8"))
    url, study = replay(case, folder)
    return json.loads(json.dumps({"study": study, "store": answers(url, case)}))


def expected_of(name: str) -> Path:
    """The file of what is expected of a case."""
    return HERE / "expected" / f"{name}.json"


def text_of(told: Any) -> str:
    """A tree of JSON as text: a leaf or a row a line, so that differences are read line by line."""
    return "\n".join(_lines(told)) + "\n"


def _lines(told: Any, indent: str = "") -> list[str]:
    whole = json.dumps(told, ensure_ascii=False, sort_keys=True)
    if not isinstance(told, dict | list) or not told or len(indent + whole) <= 100 or _flat(told):
        return [whole]
    inner = indent + " "
    if isinstance(told, dict):
        parts = [(f"{json.dumps(key, ensure_ascii=False)}: ", told[key]) for key in sorted(told)]
        opened, closed = "{", "}"
    else:
        parts, (opened, closed) = [("", one) for one in told], "[]"
    lines = [opened]
    for number, (head, value) in enumerate(parts):
        first, *rest = _lines(value, inner)
        block = [f"{inner}{head}{first}", *rest]
        block[-1] += "," if number < len(parts) - 1 else ""
        lines += block
    return [*lines, f"{indent}{closed}"]


def _flat(told: Any) -> bool:
    """Is it a row of a table, which stays on a line of its own?"""
    return isinstance(told, list) and not any(isinstance(one, dict | list) for one in told)


def main(names: Sequence[str]) -> None:
    """Write the files of these cases, or of all."""
    for name in names or CASES:
        with tempfile.TemporaryDirectory() as folder:
            told = told_of(name, Path(folder))
        expected_of(name).write_text(text_of(told), encoding="utf-8")
        print(expected_of(name).relative_to(HERE.parents[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
