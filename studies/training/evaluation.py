"""Evaluation: how well a model does at each length, on sets that are the same for every arm."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from store.metrics import SCORED, metric_of
from studies.scoring import FixedSets, Measured, averaged, judged, logits_per_answer, predict
from studies.tasks.task import UNSCORED
from variants.positions import BeyondTableError

VALIDATION_LENGTHS = 8
"""At most this many of the training lengths are used for validation, evenly spread."""

Counted = tuple[int, int | float]
"""How many things were counted, and their sum."""


def counted(logits: Tensor, targets: Tensor) -> dict[str, Counted]:
    """What a batch adds: scored answers that are right, sequences that are right throughout, nll.

    The negative log-likelihood of the scored answers is in nats.
    """
    scored, right = judged(logits, targets)
    number, rows = int(scored.sum()), "batch ... -> batch (...)"
    asked = rearrange(scored, rows).any(dim=-1)
    throughout = rearrange(right | ~scored, rows).all(dim=-1) & asked
    flat = rearrange(logits, "... classes -> (...) classes").double()
    nll = F.cross_entropy(flat, targets.flatten(), ignore_index=UNSCORED, reduction="sum")
    return {
        "answers": (number, int(right.sum())),
        "sequences": (int(asked.sum()), int(throughout.sum())),
        "nll": (number, float(nll)),
    }


@dataclass(frozen=True)
class Measure:
    """How a metric is computed at a length.

    It follows from the mean of what `counted` says, and from the floor at that length. Where that
    is a count of right ones, it is stored too. A metric that is kept `at_checkpoints` is a curve
    there.
    """

    counts: str
    value: Callable[[float, float], float] = lambda mean, floor: mean
    counts_right: bool = False
    at_checkpoints: bool = True


def skill_of(accuracy: float, floor: float) -> float:
    """(accuracy - floor) / (1 - floor): 0 for the best blind guess, 1 for a perfect answer."""
    return (accuracy - floor) / (1 - floor)


MEASURES: Mapping[str, Measure] = {
    "accuracy": Measure("answers", counts_right=True),
    "exact": Measure("sequences", counts_right=True, at_checkpoints=False),
    "skill": Measure("answers", skill_of),
    "nll": Measure("nll"),
    "floor": Measure("answers", lambda mean, floor: floor, at_checkpoints=False),
}
"""How each metric that every trained run is scored by is computed; see `store.metrics`."""
assert set(MEASURES) == set(SCORED)


def validation_lengths(shortest: int, longest: int) -> list[int]:
    """Training lengths, evenly spread and the longest among them."""
    count = min(VALIDATION_LENGTHS, longest - shortest + 1)
    if count == 1:
        return [longest]
    return [shortest + round(i * (longest - shortest) / (count - 1)) for i in range(count)]


def evaluate(
    model: nn.Module,
    sets: FixedSets,
    lengths: Iterable[int],
    device: torch.device,
    between_batches: Callable[[], None] = lambda: None,
    position_draws: int = 1,
    refused: dict[int, str] | None = None,
) -> list[Measured]:
    """Score a model at each length by every metric of `MEASURES`.

    Accuracy is the share of right answers, exact match the share of sequences with all of them
    right; skill is (accuracy - floor) / (1 - floor) with the task's floor at that length, 0 for
    the best blind guess; floor is that floor. A length that the model refuses, such as one beyond
    a learned table, is measured as None with n = 0, and `refused` is told why.

    A model that draws positions at random does so for each batch, from a stream of the replicate,
    the split and the length; predicted probabilities are averaged over `position_draws` draws.
    """
    model.eval()
    measured: list[Measured] = []
    for length in lengths:
        batches: list[dict[str, Counted]] = []
        try:
            for logits, targets in _answers(model, sets, length, device, position_draws):
                batches.append(counted(logits, targets))
                between_batches()
        except BeyondTableError as error:
            batches = []
            if refused is not None:
                refused[length] = str(error)
        floor = sets.task.floors(length).highest
        measured += [_measured(sets.split, length, name, batches, floor) for name in MEASURES]
    return measured


def of_nothing_learned(measured: Sequence[Measured]) -> list[Measured]:
    """The scores of a model that learned nothing, in place of those of one that diverged.

    Metrics of which that is not known, such as nll, are left out; what was refused stays so.
    """
    floors = {(one.split, one.length): one.value for one in measured if one.metric == "floor"}
    values = (
        metric_of(one.metric).floor_given(floors.get((one.split, one.length))) for one in measured
    )
    return [
        replace(one, value=value if one.n else None, correct=None, imputed=True)
        for one, value in zip(measured, values, strict=True)
        if value is not None or not one.n
    ]


def _answers(
    model: nn.Module, sets: FixedSets, length: int, device: torch.device, position_draws: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """The logits of a model for the set of a length, and the right answers, batch by batch."""
    random = bool(getattr(model, "draws", False))
    seed = sets.seeds.seed("positions", sets.split, length)
    positions = torch.Generator(device).manual_seed(seed) if random else None
    for batch in sets.batches(length):
        targets = batch.targets.to(device)
        drawn = [
            logits_per_answer(predict(model, batch, device, positions), targets)
            for _ in range(position_draws if random else 1)
        ]
        yield averaged(drawn), targets


def _measured(
    split: str, length: int, metric: str, batches: Sequence[Mapping[str, Counted]], floor: float
) -> Measured:
    """A metric at a length, from what was counted in each batch."""
    measure = MEASURES[metric]
    counts = [batch[measure.counts] for batch in batches]
    n, total = sum(one for one, _ in counts), sum(one for _, one in counts)
    if not n:
        return Measured(split, length, metric, 0, None)
    correct = int(total) if measure.counts_right else None
    return Measured(split, length, metric, n, measure.value(total / n, floor), correct)
