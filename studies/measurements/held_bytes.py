"""How many bytes torch's tensors hold at one time."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Held(TorchDispatchMode):
    """Follows every storage from the operation that made it to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._seen: dict[int, weakref.ref[Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in tree_leaves(made):
            if isinstance(one, torch.Tensor):
                self._follow(one.untyped_storage())
        return made

    def _follow(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._seen:
            return

        def gone(_: object) -> None:
            self.now -= size
            del self._seen[key]

        self._seen[key] = weakref.ref(storage, gone)
        self.now += size
        self.most = max(self.most, self.now)


def peak_bytes(work: Callable[[], object], device: torch.device) -> int:
    """The most bytes that tensors made in a piece of work held at one time.

    On a GPU that is what its allocator says. On the CPU it is the sum over the storages of all
    tensors that operations return, so what a kernel allocates for itself and frees again before it
    returns is not seen.
    """
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    with _Held() as held:
        work()
    return held.most
