"""What a reader must know beside the numbers of a verdict."""

from collections.abc import Iterator, Sequence

from store.intervals import wilson
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
    # What a failed seed scored is not known, so that it is in neither group.
    found = modes(sample.values, threshold) if metric in ("skill", "exact", "accuracy") else None
    if found is not None:
        n = found.success.n
        others = "the others" if not sample.unknown else "the others that did not fail"
        yield (
            f"{name} works in {share(round(found.success.mean * n), n, 'seed')} ({metric} "
            f"{found.high:.2f} there, {found.low:.2f} in {others})."
        )


def _constant(parts: Sequence[Sample]) -> Iterator[str]:
    """Seeds that all agree say nothing about a rare failure."""
    if all(len(set(sample.at_worst())) == 1 and not sample.reached for sample in parts):
        n = min(len(sample.at_worst()) for sample in parts)
        unseen = wilson(0, n).high or 0.0
        share = f"{unseen * 100:.0f} % of seeds"
        yield f"All seeds of an arm score the same; a failure in up to {share} could be unseen."
