"""The kit itself: each broken part is caught by the promise that names its fault."""

from collections.abc import Iterator
from typing import Any

import pytest

from registry import check
from registry.conformance.checks import promises_of
from registry.registry import REGISTRIES, registry_for
from tests.registry.broken_parts import attentions, layers, positions

pytestmark = pytest.mark.usefixtures("unchecked")


def faults() -> Iterator[tuple[Any, str]]:
    """Each broken part with each promise that it breaks."""
    for module in (positions, layers, attentions):
        for part in vars(module).values():
            if "breaks" in vars(part) if isinstance(part, type) else False:
                names: Any = part.breaks
                yield from ((part, name) for name in ((names,) if type(names) is str else names))


def trials() -> Iterator[Any]:
    for part, name in faults():
        dear = promises_of(registry_for(part))[name].dear
        marks = (pytest.mark.slow,) if dear else ()
        yield pytest.param(part, name, id=f"{part.name}-{name}", marks=marks)


@pytest.mark.parametrize(("part", "promise"), list(trials()))
def test_a_broken_part_is_caught_by_the_promise_that_names_its_fault(
    part: Any, promise: str
) -> None:
    report = check(part, only=[promise])
    assert [result.status for result in report.results] == ["broken"], str(report)
    assert report.results[0].detail
    assert not report.ok


def test_every_promise_is_broken_by_some_part() -> None:
    promised = {name for table in REGISTRIES.values() for name in promises_of(table)}
    assert promised - {name for _, name in faults()} == set()
