"""Call a study as its user does."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from store import Results

ROOT = Path(__file__).parents[2]


def call_in(folder: Path, study: str, *words: str) -> str:
    """Run a study to its end in a folder; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", f"studies.{study}", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def means_of(folder: Path, metric: str) -> dict[str, float]:
    """The mean of a metric over the confirming runs of each arm that has a value for it."""
    found: dict[str, list[float]] = defaultdict(list)
    for score in Results(f"sqlite:///{folder / 'sandbox.db'}").scores(metric=metric):
        if score.value is not None:
            found[score.arm].append(score.value)
    return {arm: sum(values) / len(values) for arm, values in found.items()}
