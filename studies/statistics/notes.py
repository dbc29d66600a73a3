"""What a reader must know beside the numbers of a verdict."""

from collections.abc import Iterator, Sequence

from store.aggregate import wilson
from studies.design.hypothesis import Hypothesis
from studies.statistics.amounts import share
from studies.statistics.bimodality import modes
from studies.statistics.comparisons import Sample


def notes(hypothesis: Hypothesis, parts: Sequence[Sample], threshold: float) -> tuple[str, ...]:
    """Sentences about lost seeds, arms that work in some seeds only, and seeds that all agree."""
    found: list[str] = []
    for name, sample in zip(hypothesis.arms, parts, strict=True):
        found += _lost(name, sample)
        found += _late(name, sample)
        found += _split(name, sample, hypothesis.metric, threshold)
    return (*found, *_constant(parts))


def _lost(name: str, sample: Sample) -> Iterator[str]:
    n = len(sample.values) + sample.unknown
    for count, what in ((sample.diverged, "diverged"), (sample.unknown, "failed")):
        if count:
            told = f"{share(count, n, 'seed')} of {name} {what}"
            yield f"{told} and {'counts' if count == 1 else 'count'} as {sample.floor:g}."


def _late(name: str, sample: Sample) -> Iterator[str]:
    """Runs that would have taken longer than they were given."""
    late = sample.reached.count(False)
    if late:
        yield (
            f"{late} of {len(sample.values) + sample.unknown} seeds of {name} had not got there by "
            f"step {sample.floor:g}, and count as that: they take at least so long."
        )


def _split(name: str, sample: Sample, metric: str, threshold: float) -> Iterator[str]:
    """Two groups of seeds: what a failed one scored is not known, so that it is in neither.

    That an arm works in the upper ones is said where the threshold lies between the groups.
    """
    found = modes(sample.values, threshold) if metric in ("skill", "exact", "accuracy") else None
    if found is None:
        return
    seeds = share(round(found.success.mean * found.success.n), found.success.n, "seed")
    others = f"{found.low:.2f} in the others" + " that did not fail" * bool(sample.unknown)
    if found.cut == threshold:
        yield f"{name} works in {seeds} ({metric} {found.high:.2f} there, {others})."
    else:
        yield f"{name} falls into two groups: {metric} {found.high:.2f} in {seeds}, {others}."


def _constant(parts: Sequence[Sample]) -> Iterator[str]:
    """Seeds that all agree say nothing about a rare failure."""
    values = [sample.at_worst().values for sample in parts if not sample.reached]
    if values and all(len(set(one)) == 1 for one in values):
        n = min(map(len, values))
        unseen = wilson(0, n).high or 0.0
        share = f"{unseen * 100:.0f} % of seeds"
        yield f"All seeds of an arm score the same; a failure in up to {share} could be unseen."
