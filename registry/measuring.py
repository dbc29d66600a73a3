"""What a built encoder costs and says at first: FLOPs and the size of its states, measured."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import inspect
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from variants.encoder import Encoder

BATCH = 2


def sample_of(encoder: "Encoder", length: int) -> "Tensor":
    """Two random sequences for an encoder: token ids, or vectors where it has no table."""
    import torch

    generator = torch.Generator().manual_seed(0)
    if encoder.embedding is None:
        return torch.randn(BATCH, length, encoder.dims.d_model, generator=generator)
    rows = encoder.embedding.table.num_embeddings
    return torch.randint(rows, (BATCH, length), generator=generator)


def counting() -> Any:
    """torch's counter of floating-point operations, taught what attention costs on a CPU.

    It counts matrix products, two operations for each multiplication with its addition, whether or
    not a mask lets a kernel skip some.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

    _spare_the_compiler()

    def attention(q: Any, k: Any, v: Any, *more: Any, **named: Any) -> int:
        return sdpa_flop_count(q, k, v)

    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return FlopCounterMode(display=False, custom_mapping={kernel: attention})


def _spare_the_compiler() -> None:
    """Keep torch from importing its compiler, some 2 s, to shut it out of the counter.

    Nothing is compiled while we count. Where torch spells it otherwise it is slower, and no more.
    """
    from torch.utils import flop_counter

    mode = getattr(flop_counter, "_FlopCounterMode", None)
    counted = inspect.unwrap(mode.__torch_dispatch__) if mode is not None else None
    if counted is not None and "torch._dynamo" not in sys.modules:
        counted.__dict__.setdefault("__dynamo_disable", counted)


def by_path(counter: Any) -> Mapping[str, int]:
    """The operations in each module, those of the modules that it calls among them."""
    return {
        path.partition(".")[2]: sum(counts.values())
        for path, counts in counter.get_flop_counts().items()
        if path != "Global"
    }


def first_scale(encoder: "Encoder", length: int) -> float:
    """The root mean square of the states that a new encoder gives, before the final norm."""
    import torch

    seen: list[Any] = []

    def note(module: Any, given: Any, out: Any) -> None:
        seen.append(out)

    handle = encoder.blocks[-1].register_forward_hook(note)
    try:
        with torch.no_grad():
            encoder(sample_of(encoder, length))
    finally:
        handle.remove()
    return seen[-1].square().mean().sqrt().item()
