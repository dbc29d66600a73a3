"""Scores of a stored model at lengths that its study did not ask for: exploratory ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from registry.build import threads
from registry.errors import ConfigError, Problem
from studies.errors import ModelError
from studies.scoring import FixedSets, Measured
from studies.seeds import Seeds
from studies.training.evaluation import evaluate
from studies.training.saved_models import config_of, load
from studies.training.settings import RunConfig, task_of

if TYPE_CHECKING:
    from store.ledger import Ledger
    from store.records import Run


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
    refused: dict[int, str] = field(default_factory=dict[int, str])


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
    refuse_lengths(config, asked.lengths)
    refused: dict[int, str] = {}
    with threads(run.provenance.get("threads") or torch.get_num_threads()):
        sets = FixedSets(
            task,
            asked.split,
            Seeds(config.study.seed, run.seed),
            asked.examples or settings.examples,
            asked.batch_size or settings.batch_size,
        )
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

    A length that the model refuses is stored too: without a value, and with the reason.

    Raises:
        StoreError: As `measure`, or if the run is not done.
        ConfigError: As `measure`.
    """
    known = stored_lengths(run, asked.split, ledger)
    there = {length: known[length] for length in asked.lengths if length in known}
    lengths = tuple(length for length in asked.lengths if length not in known)
    if not lengths:
        return Added([], there)
    scores, refused = measure(run, Asked(**{**vars(asked), "lengths": lengths}), storage)
    for length in lengths:
        why = f": not applicable: {refused[length]}" if length in refused else ""
        own = [score for score in scores if score.length == length]
        ledger.add_scores(run.id, own, source=f"{SOURCE}{why}")
    return Added(scores, there, refused)


def stored_lengths(run: "Run", split: str, ledger: "Ledger") -> dict[int, int]:
    """The lengths at which the accuracy of a run is stored, with the answers it is a mean over."""
    return {
        score.length: score.n
        for score in ledger.scores([run.id])
        if (score.split, score.metric, score.bin) == (split, "accuracy", None)
    }


def refuse_lengths(config: RunConfig, lengths: Sequence[int]) -> None:
    """Refuse lengths at which the task of a run has no answers.

    Raises:
        ConfigError: If there is one.
    """
    task = task_of(config.task)
    for length in lengths:
        try:
            task.check_length(length)
        except ValueError as error:
            raise ConfigError([Problem("--lengths", str(error), length)]) from None
