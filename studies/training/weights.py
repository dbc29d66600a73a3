"""Weights as safetensors: from a model to bytes, and into a model that was built anew."""

import json
from typing import TYPE_CHECKING

import torch
from torch import nn

from studies.errors import ModelError

if TYPE_CHECKING:
    from store.records import Run

HEADER_SIZE_BYTES = 8


def content_of(model: nn.Module, run: "Run") -> bytes:
    """The weights of a run as a safetensors file, which names the run that they belong to.

    Weights that several modules share are written under each of their names.

    Raises:
        ModelError: If the model holds state that is no tensor.
    """
    from safetensors.torch import save

    tensors: dict[str, torch.Tensor] = {}
    for name, value in model.state_dict().items():
        if not isinstance(value, torch.Tensor):
            raise ModelError(
                f"the weights of run {run.id} cannot be kept: its state {name!r} is of type "
                f"{type(value).__name__}, and safetensors hold tensors alone"
            )
        tensors[name] = value.detach().to("cpu", copy=True).contiguous()
    return save(tensors, _marks(run))


def put_into(model: nn.Module, content: bytes, run: "Run") -> None:
    """Put the weights of a run into a model that was built from its config.

    Raises:
        ModelError: If they are those of another run, or do not fit.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        marks, tensors = _marks_in(content), load(content)
    except (SafetensorError, ValueError) as error:
        raise ModelError(f"the weights of run {run.id} cannot be read: {error}") from error
    if marks != _marks(run):
        raise ModelError(
            f"these are not the weights of run {run.id} ({_told(_marks(run))}), but of "
            f"{_told(marks)}"
        )
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise ModelError(f"the weights of run {run.id} do not fit its model: {error}") from error


def _marks(run: "Run") -> dict[str, str]:
    """What tells the weights of one run from those of any other."""
    marks = {"study": run.study, "task": run.task, "arm": run.arm, "seed": run.seed}
    return {name: str(value) for name, value in {**marks, "config": run.config_hash}.items()}


def _marks_in(content: bytes) -> dict[str, str]:
    size = int.from_bytes(content[:HEADER_SIZE_BYTES], "little")
    header = json.loads(content[HEADER_SIZE_BYTES : HEADER_SIZE_BYTES + size])
    return header.get("__metadata__", {})


def _told(marks: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in marks.items()) or "a file without a name"
