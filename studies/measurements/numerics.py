"""Measure one attention against float64: its rounding error, its time and its memory."""

import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Literal

import torch
from einops import einsum, reduce
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from registry.choices import build_mask, build_part, resolve
from studies.training.outcome import Measured, Outcome, Work
from variants.dims import Dims
from variants.masks import Mask
from variants.masks.mask import Sizes
from variants.positions import NoPosition

Heads = Float[Tensor, "batch heads seq d_head"]
Kernel = Literal["any", "math", "flash", "efficient", "cudnn"]

KERNELS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}
ROUNDS = 5
"""So many rounds are timed after one that is not; their median counts."""


@dataclass(frozen=True)
class Inputs:
    """Queries, keys, values and the gradient of the output, as they were rounded."""

    q: Heads
    k: Heads
    v: Heads
    upstream: Heads

    def to(self, *target: Any) -> "Inputs":
        """The same numbers in another dtype, or on a device."""
        return Inputs(*(one.to(*target) for one in vars(self).values()))


def measure(
    work: Work,
    attention: str = "explicit",
    kernel: Kernel = "any",
    scaled: bool = True,
    d_head: int = 32,
    logit_scale: float = 1.0,
    mask: str = "full",
    n_heads: int = 4,
    batch: int = 2,
) -> Outcome:
    r"""Compare one attention with the same formula in float64, at every tested length.

    Queries, keys, values and the upstream gradient are standard normal, rounded to
    `training.dtype`; both sides start from the rounded numbers, so only the arithmetic differs.
    Errors are root mean squares and maxima over all elements, relative to the root mean square of
    the reference, in units of the roundoff u of the dtype ($2^{-24}$ for float32, $2^{-8}$ for
    bfloat16): an error of 1 is what rounding the result once can cost.

    Metrics: `forward_rms`, `forward_max`, and the same of the gradients `q_grad`, `k_grad`,
    `v_grad`, in u; `entropy` of the reference's weights as a share of that of uniform ones;
    `seconds` of a forward and backward pass; `mebibytes` held at most in one.

    Args:
        work: The run. Its dtype is `training.dtype`, its lengths `evaluation.test_lengths`.
        attention: A backend.
        kernel: Which of torch's kernels it may use; one that the device lacks, or that does not
            take these inputs, makes the run not applicable.
        scaled: Whether scores are divided by √d_head.
        d_head: Width of a head.
        logit_scale: What the queries are multiplied by.
        mask: Which keys each query may attend to, as in a config.
        n_heads: Heads.
        batch: Sequences.
    """
    dims = Dims(n_heads * d_head, n_heads, d_head, n_layers=1)
    dtype = getattr(torch, work.config.training.dtype)
    rule = build_mask(resolve("mask", mask))
    exact, ours = (
        Attend(build_part("attention", resolve("attention", name), dims), rule, dims, scaled)
        for name in ("explicit", attention)
    )
    outcome = Outcome(parameters=0)
    for length in work.config.evaluation.test_lengths:
        drawn = draw(work, (batch, n_heads, length, d_head), logit_scale).to(work.device, dtype)
        with nullcontext() if kernel == "any" else sdpa_kernel([KERNELS[kernel]]):
            try:
                outcome.scores += list(_measures(exact, ours, drawn, length))
            except RuntimeError as error:
                if kernel == "any" or isinstance(error, torch.OutOfMemoryError):
                    raise
                why = next(iter(str(error).splitlines()), type(error).__name__)
                reason = f"torch has no {kernel} kernel for this: {why}"
                return Outcome("not_applicable", reason, parameters=0)
        work.between_batches()
    return outcome


@dataclass(frozen=True)
class Attend:
    """An attention over a mask, without positions."""

    backend: Any
    mask: Mask
    dims: Dims
    scaled: bool

    def __call__(self, q: Heads, k: Heads, v: Heads) -> Heads:
        return self.backend(self._scaled(q), k, v, self._prepared(q))

    def weights(self, q: Heads, k: Heads) -> Float[Tensor, "batch heads query key"]:
        """The weights; only the explicit backend has them."""
        return self.backend.weights(self._scaled(q), k, self._prepared(q))

    def _scaled(self, q: Heads) -> Heads:
        # Backends divide by √d_head; without that scale the queries undo it.
        return q if self.scaled else q * self.dims.d_head**0.5

    def _prepared(self, q: Heads) -> Any:
        batch, heads, length, _ = q.shape
        index = torch.arange(length, device=q.device).unsqueeze(0)
        sizes = Sizes(batch, heads, length, length)
        return self.backend.prepare(self.mask, NoPosition(self.dims), index, index, sizes)


def draw(work: Work, shape: tuple[int, int, int, int], logit_scale: float) -> Inputs:
    """Standard normal inputs in float64: a function of the replicate and the shape."""
    generator = work.seeds.generator("data", *shape)
    q, k, v, upstream = torch.randn((4, *shape), generator=generator, dtype=torch.float64)
    return Inputs(q * logit_scale, k, v, upstream)


def _measures(exact: Attend, ours: Attend, inputs: Inputs, length: int) -> Iterator[Measured]:
    doubled = inputs.to(torch.float64)
    reference, found = passed(exact, doubled), passed(ours, inputs)
    unit = roundoff(inputs.q.dtype)
    for name, right in reference.items():
        error = found[name].double() - right
        size = right.square().mean().sqrt()
        worst, typical = error.abs().max() / size, error.square().mean().sqrt() / size
        for metric, value in ((f"{name}_max", worst), (f"{name}_rms", typical)):
            yield Measured("test", length, metric, right.numel(), value.item() / unit)
    weights = exact.weights(doubled.q, doubled.k)
    yield Measured("test", length, "entropy", weights.shape[0], entropy(weights, exact, length))
    once, device = partial(passed, ours, inputs), inputs.q.device
    seconds = median(_seconds(once, device) for _ in range(ROUNDS))
    yield Measured("test", length, "seconds", ROUNDS, seconds)
    yield Measured("test", length, "mebibytes", 1, peak_bytes(once, device) / 2**20)


def passed(attend: Attend, inputs: Inputs) -> dict[str, Tensor]:
    """Output and gradients of one forward and backward pass."""
    leaves = [one.detach().clone().requires_grad_() for one in (inputs.q, inputs.k, inputs.v)]
    output = attend(*leaves)
    q, k, v = torch.autograd.grad(output, leaves, inputs.upstream)
    return {"forward": output.detach(), "q_grad": q, "k_grad": k, "v_grad": v}


def roundoff(dtype: torch.dtype) -> float:
    """The unit roundoff u: half the distance from 1 to the next number."""
    return torch.finfo(dtype).eps / 2


def entropy(
    weights: Float[Tensor, "batch heads query key"], attend: Attend, length: int
) -> float | None:
    """Mean entropy of the rows, as a share of what even weights over the same keys have."""
    rows = -einsum(weights, weights.clamp_min(1e-300).log(), "b h q k, b h q k -> b h q")
    batch, heads, queries, _ = weights.shape
    allowed = attend.mask.dense(batch, heads, queries, length, device=weights.device)
    seen = reduce(allowed.expand(weights.shape).double(), "b h q k -> b h q", "sum")
    several = seen > 1
    return (rows[several] / seen[several].log()).mean().item() if several.any() else None


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start


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
