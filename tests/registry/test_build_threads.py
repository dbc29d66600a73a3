"""Small tensors are computed by one thread, whatever the process was set to."""

from collections.abc import Iterator

import pytest
import torch

from registry.build import threads
from registry.conformance.checks import Promise
from registry.conformance.subject import Subject, Trial
from registry.registry import REGISTRIES


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_a_block_and_a_function_have_their_threads_and_others_come_back() -> None:
    @threads(3)
    def inside() -> int:
        return torch.get_num_threads()

    with threads():
        assert torch.get_num_threads() == 1
    assert inside() == 3
    assert torch.get_num_threads() == 2


def test_an_error_inside_brings_the_threads_back() -> None:
    with pytest.raises(ZeroDivisionError), threads():
        _ = 1 / 0
    assert torch.get_num_threads() == 2


def test_a_promise_is_tried_with_one_thread() -> None:
    seen: list[int] = []

    def threads_are_counted(subject: Subject) -> None:
        seen.append(torch.get_num_threads())

    norms = REGISTRIES["norm"]
    trial = Trial(norms, norms["layernorm"])
    trial.result(Promise("threads_are_counted", threads_are_counted, dear=False, once=True))

    assert seen == [1]
