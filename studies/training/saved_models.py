"""Models of stored runs: keep their weights, bring them back, and score them at further lengths."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from registry.build import threads
from registry.errors import ConfigError, Problem
from registry.plugins import load as load_plugin
from store.results import Results
from store.weights import ModelFiles
from studies.errors import ModelError
from studies.scoring import FixedSets, Measured
from studies.seeds import Seeds
from studies.training.evaluation import evaluate
from studies.training.identity import components
from studies.training.models import build_model
from studies.training.settings import RunConfig, check_run, task_of

if TYPE_CHECKING:
    from store.ledger import Ledger
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

    `storage` is the database beside which the weights are. With `despite_changes` a model is also
    brought back where the source of a part has changed since; it may compute something else then.

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
    """The latest weights of a run; a ModelError where it has none, with the way to get them."""
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

    A plug-in whose file is elsewhere now is imported by the caller, before. A part that is gone
    is a ConfigError; a run without a model is a ModelError.
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

    Weights that several modules share are written under each of their names; state that is no
    tensor is a ModelError.
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
    """Put the weights of a run into a model of its config; a ModelError where they are others."""
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
            f"these are not the weights of run {run.id} ({_named(own)}), but of {_named(ordered)}"
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


def _named(marks: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in marks.items()) or "a file without a name"


SOURCE = "studies.evaluate"
"""What later scores name as their source; the run itself names none."""


@dataclass(frozen=True)
class Asked:
    """What is to be measured. `examples` and `batch_size` are those of the run where None."""

    lengths: tuple[int, ...]
    split: str = "test"
    examples: int | None = None
    batch_size: int | None = None
    device: str = "cpu"


@dataclass(frozen=True)
class Added:
    """What was measured, by length: what was there already, and what a model refused and why."""

    scores: list[Measured]
    known: dict[int, int]
    refused: dict[int, str]


def measure(run: "Run", asked: Asked, storage: str) -> tuple[list[Measured], dict[int, str]]:
    """Score the stored model of a run, on the sets that its study would have used.

    A set follows from replicate, split, length and number of examples; with the batch size and
    the thread count of the run, a length that the study did score gets the identical number.

    Raises:
        StoreError: If the model cannot be brought back; see `studies.load`.
        ModelError: If the run was scored in another way than by a task.
        ConfigError: If the task has no such length.
    """
    config = config_of(run)
    if not config.scored:
        raise ModelError(f"run {run.id} ({run.study}, {run.arm}) has no scores of a task to add to")
    model = load(run, storage, despite_changes=True, device=asked.device)
    task, settings = task_of(config.task), config.evaluation
    for length in asked.lengths:
        try:
            task.check_length(length)
        except ValueError as error:
            raise ConfigError([Problem("--lengths", str(error), length)]) from None
    seeds = Seeds(config.study.seed, run.seed)
    sizes = asked.examples or settings.examples, asked.batch_size or settings.batch_size
    sets, refused = FixedSets(task, asked.split, seeds, *sizes), dict[int, str]()
    with threads(run.provenance.get("threads") or torch.get_num_threads()):
        scores = evaluate(
            model,
            sets,
            asked.lengths,
            torch.device(asked.device),
            position_draws=settings.position_draws,
            refused=refused,
        )
    return scores, refused


def add_later_scores(run: "Run", asked: Asked, ledger: "Ledger", storage: str) -> Added:
    """Measure the lengths that are not stored yet, and store them as added later.

    A length that the model refuses is stored too: without a value, and with the reason. Errors are
    those of `measure`, and a StoreError if the run is not done.
    """
    known = {
        score.length: score.n
        for score in ledger.scores([run.id])
        if (score.split, score.metric, score.bin) == (asked.split, "accuracy", None)
    }
    there = {length: known[length] for length in asked.lengths if length in known}
    lengths = tuple(length for length in asked.lengths if length not in known)
    if not lengths:
        return Added([], there, {})
    scores, refused = measure(run, replace(asked, lengths=lengths), storage)
    for length in lengths:
        why = f": not applicable: {refused[length]}" if length in refused else ""
        own = [score for score in scores if score.length == length]
        ledger.add_scores(run.id, own, source=f"{SOURCE}{why}")
    return Added(scores, there, refused)
