"""Peak memory of each attention backend, forward and backward, as a ratio to sdpa's in this run.

python benchmarks/attention_memory.py [--length T] [--batch B] [--heads H] [--situations …]

A step is one layer of attention with its projections, forward and backward. Memory is the most
that torch held at one time in a step. The growth is by how much that rises when the length
doubles: 2 is linear, 4 quadratic. Time is CPU seconds of a step, as a ratio to sdpa's.

Where neither mask nor position is more than a full or causal mask, sdpa has a fused kernel that is
linear already, and `chunked` has nothing to save.
"""

import argparse
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile

from registry import build_encoder
from variants.masks import Causal, Full, Mask, Padding

D_HEAD = 32
BACKENDS = ("sdpa", "sdpa by its math kernel", "explicit", "chunked")
SITUATIONS: dict[str, tuple[str, Callable[[int, int], Mask]]] = {
    "rope": ("rope", lambda batch, length: Full()),
    "rope, causal": ("rope", lambda batch, length: Causal()),
    "rope, causal, padded": ("rope", lambda batch, length: Causal() & padding(batch, length)),
    "alibi": ("alibi", lambda batch, length: Full()),
    "t5_bias, padded": ("t5_bias", lambda batch, length: padding(batch, length)),
}


def padding(batch: int, length: int) -> Mask:
    return Padding(lengths=[length - 7 * row - 1 for row in range(batch)])


def step(backend: str, situation: str, length: int, batch: int, heads: int) -> None:
    """One layer of attention, forward and backward."""
    position, mask = SITUATIONS[situation]
    name, _, kernel = backend.partition(" ")
    encoder = build_encoder(
        {
            "d_model": heads * D_HEAD,
            "n_heads": heads,
            "n_layers": 1,
            "position": position,
            "feedforward": "none",
            "attention": name,
        },
        seed=0,
    )
    x = torch.randn(batch, length, heads * D_HEAD, requires_grad=True)
    with sdpa_kernel(SDPBackend.MATH) if kernel else nullcontext():
        encoder(x, mask=mask(batch, length)).hidden.sum().backward()


def peak(backend: str, situation: str, length: int, batch: int, heads: int) -> int:
    """The most bytes that torch held at one time in a step."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step(backend, situation, length, batch, heads)
    results: Any = profiler.profiler
    held, most = 0, 0
    for event in results.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most


def seconds(backend: str, situation: str, length: int, batch: int, heads: int) -> float:
    start = time.process_time()
    step(backend, situation, length, batch, heads)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option, value in {"length": 4096, "batch": 1, "heads": 4}.items():
        parser.add_argument(f"--{option}", type=int, default=value)
    parser.add_argument("--situations", nargs="*", choices=SITUATIONS, default=[*SITUATIONS])
    options = parser.parse_args()
    torch.set_num_threads(1)
    for situation in options.situations:
        first: dict[str, float] = {}
        for backend in BACKENDS:
            at = (backend, situation), (options.batch, options.heads)
            step(*at[0], 64, *at[1])
            half, whole = (
                peak(*at[0], length, *at[1]) for length in (options.length // 2, options.length)
            )
            spent = seconds(*at[0], options.length, *at[1])
            first = first or {"bytes": whole, "seconds": spent}
            print(
                f"{situation:20}  {backend:23}  {whole / 2**20:6.0f} MiB, "
                f"{whole / first['bytes']:5.2f} x sdpa, growth {whole / half:3.1f}; "
                f"time {spent / first['seconds']:4.1f} x sdpa",
                flush=True,
            )


if __name__ == "__main__":
    main()
