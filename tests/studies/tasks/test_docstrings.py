"""The examples in the docstrings of the tasks are true."""

import doctest
import importlib

import pytest

from studies.tasks import tasks


@pytest.mark.parametrize("name", list(tasks))
def test_a_task_shows_an_example_that_is_true(name: str) -> None:
    module = importlib.import_module(f"studies.tasks.{name}")
    outcome = doctest.testmod(module)
    assert outcome.failed == 0
    assert outcome.attempted > 0
