"""What differs between two configs: what they say, and what follows from it silently."""

from collections.abc import Iterator, Mapping
from typing import Any

from registry.build import build_encoder, threads
from registry.choices import Choice
from registry.config import EncoderConfig
from registry.inspect import by_path, counting, first_scale, sample_of
from registry.summary import columns


def differences(
    one: EncoderConfig, other: EncoderConfig, names: tuple[str, str], length: int, width: int | None
) -> Iterator[str]:
    """The lines of `diff`: options that differ, then parameters, FLOPs and first scale that do.

    Args:
        one: A config.
        other: Another.
        names: What they are called.
        length: Length of the sample batch.
        width: Of the terminal; None leaves every line at its full width.
    """
    left, right = _flat(one), _flat(other)
    said = [
        (key, left.get(key, "-"), right.get(key, "-"))
        for key in sorted({*left, *right})
        if left.get(key, "-") != right.get(key, "-")
    ]
    if not said:
        yield "no option differs"
        return
    yield from columns([("option", *names), *said], width)
    measured = [_measured(config, length) for config in (one, other)]
    silent = [
        (what, value, measured[1][what])
        for what, value in measured[0].items()
        if value != measured[1][what]
    ]
    yield ""
    yield from columns([("measured", *names), *silent], width) if silent else ["nothing else"]


def _flat(config: EncoderConfig) -> dict[str, str]:
    """Every option under its dotted key, defaults filled in."""
    return dict(_leaves("", dict(config)))


def _leaves(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Choice):
            yield f"{prefix}{key}", value.name
            yield from _leaves(f"{prefix}{key}.", value.options())
        elif hasattr(value, "model_dump"):
            yield from _leaves(f"{prefix}{key}.", value.model_dump())
        else:
            yield f"{prefix}{key}", str(value)


@threads()
def _measured(config: EncoderConfig, length: int) -> dict[str, str]:
    """Parameters, FLOPs of a forward pass over two sequences, and the first size of states."""
    import torch

    encoder = build_encoder(config, seed=0).eval()
    with torch.no_grad(), counting() as counter:
        encoder(sample_of(encoder, length))
    parameters = sum(one.numel() for one in encoder.parameters())
    norms = sum(type(one).__module__.startswith("variants.norms") for one in encoder.modules())
    return {
        "parameters": f"{parameters:,}",
        f"FLOPs, 2 sequences of {length}": f"{by_path(counter).get('', 0):,}",
        "norms": str(norms),
        "size of states after the last block, untrained": f"{first_scale(encoder, length):.3g}",
    }
