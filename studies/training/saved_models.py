"""Bring back the model of a stored run, with the weights that it was scored with."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from registry.plugins import load as load_plugin
from store.results import Results
from store.weights import ModelFiles
from studies.errors import ModelError
from studies.seeds import Seeds
from studies.training.identity import components
from studies.training.models import build_model
from studies.training.settings import RunConfig, check_run

if TYPE_CHECKING:
    from store.records import Model, Run


def load(
    run: "Run | int",
    storage: str = "sqlite:///sandbox.db",
    *,
    despite_changes: bool = False,
    device: str = "cpu",
) -> nn.Module:
    """The model of a run as it was when it was scored, in eval mode.

    It is built from the config of the run, whatever built it then, and its weights are verified.

    Args:
        run: A run, or its id.
        storage: The database, beside which the weights are.
        despite_changes: Also where the source of a part has changed since the run: then the model
            may compute something else.
        device: Where the model is put.

    Raises:
        StoreError: If there is no such run, or its file is missing or is not what was saved.
        ModelError: If the run has no weights, or the source of one of its parts has changed.
        ConfigError: If a part or function of the run is not there any more.
    """
    if not isinstance(run, int) and not hasattr(run, "id"):
        raise TypeError(f"a run is a record of the store, or its id; got {run!r}")
    results = Results(storage)
    try:
        found = results.run(run if isinstance(run, int) else run.id)
        saved = saved_model(found, results)
        config = config_of(found)
        changes = list(changed_parts(found, config, results))
    finally:
        results.close()
    if changes and not despite_changes:
        raise ModelError(
            f"since run {found.id} the source has changed of {', '.join(changes)}; "
            "load(…, despite_changes=True) brings it back all the same"
        )
    content = ModelFiles(storage).read(saved)
    model = build_model(config, Seeds(config.study.seed, found.seed))
    model = model.to(device, getattr(torch, config.training.dtype))
    put_into(model, content, found)
    return model.eval()


def saved_model(run: "Run", results: Results) -> "Model":
    """The latest weights of a run.

    Raises:
        ModelError: If it has none, with the way to get them.
    """
    saved = results.models(phase=None, where=f"id == {run.id}")
    if saved:
        return max(saved, key=lambda model: model.created_at)
    if run.phase == "tune":
        raise ModelError(f"run {run.id} is a tuning run; the weights of confirming runs are kept")
    raise ModelError(
        f"run {run.id} ({run.study}, {run.arm}) is {run.status} and has no saved weights; its "
        f"study's command keeps them with --save-models, of stored runs with --rerun {run.arm} too"
    )


def config_of(run: "Run") -> RunConfig:
    """The config of a run, whose plug-ins are imported.

    A plug-in whose file is elsewhere now is imported by the caller, before.

    Raises:
        ConfigError: If a part of it is not there any more.
        ModelError: If nothing in it is a model.
    """
    for plugin in run.provenance.get("plugins", []):
        spec, file = str(plugin["spec"]), Path(plugin["file"])
        if file.is_file() or not spec.endswith(".py"):
            load_plugin(str(file) if spec.endswith(".py") else spec)
    config = check_run(run.config)
    if config.encoder is None and config.model is None:
        raise ModelError(f"run {run.id} ({run.study}, {run.arm}) measures without a model")
    return config


def changed_parts(run: "Run", config: RunConfig, results: Results) -> Iterator[str]:
    """The parts of a run whose source, wherever it is now, is not what it was done with."""
    stored = results.components(run.code_hash or "")
    known = {(part.kind, part.name): part.source_hash for part in stored}
    for part in components(config):
        if known.get((part.kind, part.name)) != part.source_hash:
            yield f"{part.kind} {part.name}"


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
    if marks != (own := _marks(run)):
        # safetensors gives its metadata back in any order.
        ordered = {name: marks[name] for name in own if name in marks} | marks
        raise ModelError(
            f"these are not the weights of run {run.id} ({_told(own)}), but of {_told(ordered)}"
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
