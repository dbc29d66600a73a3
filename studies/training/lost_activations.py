"""Where the first number is lost: which module of a model first gives one that is not finite."""

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

LAYER = re.compile(r"(?:^|\.)blocks\.(\d+)\b")


def first_lost(model: nn.Module, run: Callable[[], object]) -> str | None:
    """The path of the first module whose output is not finite while `run` calls the model.

    Modules inside others answer first, so it is the innermost one at fault; None where none is.
    """
    lost: list[str] = []
    handles: list[Any] = []
    for path, module in model.named_modules():

        def look(module: nn.Module, given: Any, output: Any, path: str = path) -> None:
            floats = isinstance(output, Tensor) and output.is_floating_point()
            if floats and not lost and not output.isfinite().all():
                lost.append(path)

        handles.append(module.register_forward_hook(look))
    try:
        with torch.no_grad():
            run()
    finally:
        for handle in handles:
            handle.remove()
    return lost[0] if lost else None


def told(path: str | None) -> str:
    """The module as the end of a sentence: its layer, and its path."""
    if path is None:
        return ""
    layer = LAYER.search(path)
    where = f"layer {layer[1]} ({path})" if layer else path or "the model"
    return f"; the first activations that are not finite are those of {where}"
