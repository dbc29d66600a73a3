"""The example goes from the file to a picture."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from store import Ledger
from store.records import PlannedRun

MakeRun = Callable[..., PlannedRun]
EXAMPLE = Path(__file__).parents[2] / "examples" / "query.py"


def test_the_example_draws_a_line_for_each_arm(
    ledger: Ledger,
    url: str,
    tmp_path: Path,
    make_run: MakeRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = ledger.plan([make_run(seed, arm=arm) for arm in ("rope", "none") for seed in (0, 1)])
    while claim := ledger.claim("w", ids):
        scores = [
            {"split": "test", "length": length, "metric": "accuracy", "n": 4, "value": value}
            for length, value in ((8, 1.0), (16, 0.75 + claim.run.seed / 8), (32, 0.5))
        ]
        ledger.finish(claim, "done", scores=scores)
    picture = tmp_path / "accuracy.png"
    monkeypatch.setattr(sys, "argv", ["query.py", url, str(picture)])

    names = runpy.run_path(str(EXAMPLE))

    lines = names["plt"].gca().get_lines()
    assert [line.get_label() for line in lines] == ["none, copy", "rope, copy"]
    assert list(lines[1].get_xdata()) == [8, 16, 32]
    assert list(lines[1].get_ydata()) == [1.0, 0.8125, 0.5]
    assert picture.read_bytes().startswith(b"\x89PNG")
    names["plt"].close("all")


def test_the_example_asks_and_draws_in_ten_lines() -> None:
    text = EXAMPLE.read_text()
    body = text[text.index("storage, picture") :].strip().splitlines()
    assert len(body) <= 10
