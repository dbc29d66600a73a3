"""Where a study computes."""

from typing import Any

import torch

from registry.errors import ConfigError, Problem


def device_named(name: str) -> str:
    """The device that "cpu", "cuda" or "auto" names here.

    Raises:
        ConfigError: If there is no CUDA device and one is asked for.
    """
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise ConfigError([Problem("device", "torch sees no CUDA device here; take cpu or auto")])
    return "cuda" if there and name != "cpu" else "cpu"


def device_facts(device: str) -> dict[str, Any]:
    """What is known of torch and of the device."""
    facts: dict[str, Any] = {"version": torch.__version__, "device": device}
    if device == "cuda":
        facts |= {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    return facts


def out_of_memory(error: BaseException) -> bool:
    """Does an error say that there is not enough memory? On the CPU torch has no type for it."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "allocate memory" in str(error)
    )
