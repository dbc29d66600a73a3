"""Settings of the whole test run; every test leaves the tables as it found them."""

import os

# Before torch is imported, here and in the processes that tests start: tests that run beside one
# another would fight over the cores otherwise, and numbers depend on the thread count.
os.environ["OMP_NUM_THREADS"] = "1"

from collections.abc import Iterator

import jaxtyping
import pytest

import studies.probes
import studies.tasks  # noqa: F401  (both announce their tables, which must outlive every test)
from registry import isolated

pytest_plugins = ["pytester", "tests.messages"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Names are the same in every process: test workers compare what each has collected."""
    for item in items:
        if "0x" in item.nodeid:
            raise pytest.UsageError(f"a test is named after a memory address: {item.nodeid}")


@pytest.fixture(autouse=True)
def tables_as_they_were() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def unchecked() -> Iterator[None]:
    """What users get: the checks of shapes are on in tests alone, and would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
