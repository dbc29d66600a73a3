"""Cost of a mask on the sdpa backend, as a ratio to handing torch the same mask as a dense tensor.

python benchmarks/masks.py [--rounds N] [--length T] [--batch B] [--heads H]

Both run attention forward and backward on the same tensors, and both make their mask anew, as a
batch of other lengths would. Rounds alternate between them, the first is not counted, and the
median ratio over the rounds is printed. Memory is the peak of what torch allocates in a round.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler of memory tells each start and stop

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from variants import Dims
from variants.attentions import SDPA
from variants.masks import Causal, Full, Mask, Padding, Sizes
from variants.positions import NoPosition

D_HEAD = 32
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def masks(batch: int, length: int) -> dict[str, Mask]:
    padding = Padding(lengths=[length - row * length // (2 * batch) for row in range(batch)])
    return {"full": Full(), "padding": padding, "causal": Causal(), "both": Causal() & padding}


def ours(mask: Mask, sizes: Sizes) -> Attend:
    dims = Dims(sizes.heads * D_HEAD, sizes.heads, D_HEAD, 1)
    backend, index = SDPA(dims), torch.arange(sizes.queries).unsqueeze(0)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return backend(q, k, v, backend.prepare(mask, NoPosition(dims), index, index, sizes))

    return attend


def dense(mask: Mask, sizes: Sizes) -> Attend:
    shape = (sizes.batch, sizes.heads, sizes.queries, sizes.keys)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        allowed = mask.dense(*shape).expand(shape).contiguous()
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)

    return attend


def step(attend: Attend, inputs: Tensor) -> None:
    q, k, v = inputs.clone().requires_grad_()
    attend(q, k, v).sum().backward()


def seconds(attend: Attend, inputs: Tensor) -> float:
    """CPU seconds of a step."""
    start = time.process_time()
    step(attend, inputs)
    return time.process_time() - start


def peak(attend: Attend, inputs: Tensor) -> int:
    """The most bytes that torch held at one time in a step."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step(attend, inputs)
    results: Any = profiler.profiler
    held, most = 0, 0
    for event in results.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option, value in {"rounds": 7, "length": 512, "batch": 4, "heads": 4}.items():
        parser.add_argument(f"--{option}", type=int, default=value)
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes = Sizes(options.batch, options.heads, options.length, options.length)
    inputs = torch.randn(3, sizes.batch, sizes.heads, sizes.queries, D_HEAD)
    for name, mask in masks(sizes.batch, sizes.keys).items():
        one, other = ours(mask, sizes), dense(mask, sizes)
        torch.testing.assert_close(one(*inputs), other(*inputs))
        pairs = [(seconds(one, inputs), seconds(other, inputs)) for _ in range(options.rounds + 1)][
            1:
        ]
        ratio = statistics.median(mine / theirs for mine, theirs in pairs)
        mine, theirs = peak(one, inputs), peak(other, inputs)
        print(
            f"{name:8} {ratio:.2f} x the time and {mine / theirs:.2f} x the memory of a dense mask"
            f" ({mine / 2**20:.1f} of {theirs / 2**20:.1f} MiB)"
        )


if __name__ == "__main__":
    main()
