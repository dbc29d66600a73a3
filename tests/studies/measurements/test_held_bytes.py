"""Bytes that tensors hold at one time, counted by hand."""

import torch

from studies.measurements.numerics import peak_bytes

CPU = torch.device("cpu")
SIDE = 256
ONE = SIDE * SIDE * 4


def test_what_is_gone_is_not_counted_and_a_view_keeps_its_storage() -> None:
    def work() -> None:
        first = torch.zeros(SIDE, SIDE)
        second = first + 1
        del first
        third = second * 2
        view = third.flatten()[:5]
        del second, third
        fourth = torch.ones(SIDE, SIDE)  # beside the storage that the view keeps
        fifth = fourth + 1
        del view, fourth, fifth

    assert peak_bytes(work, CPU) == 3 * ONE


def test_what_the_backward_pass_needs_is_counted() -> None:
    def work() -> None:
        x = torch.zeros(SIDE, SIDE, requires_grad=True)
        (x.exp() * 2).sum().backward()

    # x, the saved exponential, and in the backward pass the two products with it.
    assert 4 * ONE <= peak_bytes(work, CPU) <= 4 * ONE + 64


def test_what_was_there_before_is_not_counted() -> None:
    before = torch.zeros(SIDE, SIDE)
    assert peak_bytes(lambda: before.add_(1), CPU) <= ONE
