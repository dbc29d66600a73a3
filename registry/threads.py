"""How many threads torch computes with."""

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def threads(count: int = 1) -> Generator[None]:
    """Compute with so many threads; around a block, or as a decorator of a function.

    Numbers depend on it, and small tensors gain nothing from more than one: where other processes
    want the cores too, threads that wait for each other take many times as long.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
