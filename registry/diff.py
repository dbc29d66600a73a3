"""What differs between two configs: what they say, and what follows from it silently."""

from collections.abc import Iterator, Mapping
from typing import Any

from registry.build import build_encoder, threads
from registry.choices import Choice
from registry.config import EncoderConfig
from registry.inspect import by_path, counting, sample_of
from registry.summary import columns


def differences(
    one: EncoderConfig, other: EncoderConfig, names: tuple[str, str], length: int, width: int | None
) -> Iterator[str]:
    """The lines of `diff`: options that differ, then parameters, FLOPs and first scale that do.

    Without the width of a terminal every line has its full width.
    """
    left, right = dict(_leaves(dict(one))), dict(_leaves(dict(other)))
    options = sorted(_unequal(left, right))
    if not options:
        yield "no option differs"
        return
    yield from columns([("option", *names), *options], width)
    silent = _unequal(_measured(one, length), _measured(other, length))
    yield ""
    yield from columns([("measured", *names), *silent], width) if silent else ["nothing else"]


def _unequal(left: Mapping[str, str], right: Mapping[str, str]) -> list[tuple[str, str, str]]:
    keys = dict.fromkeys([*left, *right])
    pairs = [(key, left.get(key, "-"), right.get(key, "-")) for key in keys]
    return [(key, one, other) for key, one, other in pairs if one != other]


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Choice):
            yield f"{prefix}{key}", value.name
            yield from _leaves(value.options(), f"{prefix}{key}.")
        elif hasattr(value, "model_dump"):
            yield from _leaves(value.model_dump(), f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)


@threads()
def _measured(config: EncoderConfig, length: int) -> dict[str, str]:
    import torch

    encoder, states = build_encoder(config, seed=0).eval(), list[Any]()
    encoder.blocks[-1].register_forward_hook(lambda block, given, out: states.append(out))
    with torch.no_grad(), counting() as counter:
        encoder(sample_of(encoder, length))
    norms = sum(type(one).__module__.startswith("variants.norms") for one in encoder.modules())
    scale = states[-1].square().mean().sqrt().item()
    return {
        "parameters": f"{sum(one.numel() for one in encoder.parameters()):,}",
        f"FLOPs, 2 sequences of {length}": f"{by_path(counter).get('', 0):,}",
        "norms": str(norms),
        "size of states after the last block, untrained": f"{scale:.3g}",
    }
