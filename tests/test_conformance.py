"""The catalog keeps its promises: every part, with every variation of its options.

Promises that take seconds are slow tests; one part of the catalog keeps them in the default run.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from registry import check
from registry.conformance.checks import promises_of
from registry.registry import REGISTRIES

ROOT = Path(__file__).parents[1]
CAPTURE = "it_is_captured_whole_by_dynamo"
PROMISING = [table for table in REGISTRIES.values() if table.promises]
PARTS = [(table.kind, name) for table in PROMISING for name in table]


@pytest.mark.slow
def test_all_that_promise_it_are_captured_whole() -> None:
    # In a process of its own: the checks of shapes that tests add cannot be captured.
    words = [sys.executable, "-m", "registry", "check", "--only", CAPTURE]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def dear_trials() -> Iterator[Any]:
    for kind, name in PARTS:
        for promise in promises_of(REGISTRIES[kind]).values():
            if promise.dear and promise.name != CAPTURE:
                yield pytest.param(kind, name, promise.name, id=f"{kind}-{name}-{promise.name}")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_a_part_keeps_the_promises_of_its_kind(kind: str, name: str) -> None:
    report = check(REGISTRIES[kind][name], dear=False)
    assert report.ok, str(report)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("kind", "name", "promise"), list(dear_trials()))
def test_a_part_keeps_what_takes_longer_to_see(kind: str, name: str, promise: str) -> None:
    report = check(REGISTRIES[kind][name], only=[promise])
    assert report.ok, str(report)
