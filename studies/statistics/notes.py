"""What a reader must know beside the numbers of a verdict."""

from collections.abc import Iterator

from store.intervals import wilson
from studies.hypothesis import Hypothesis
from studies.statistics.bimodality import modes
from studies.statistics.comparisons import Sample


def notes(hypothesis: Hypothesis, pair: tuple[Sample, Sample], threshold: float) -> tuple[str, ...]:
    """Sentences about lost seeds, arms that work in some seeds only, and seeds that all agree."""
    found: list[str] = []
    for name, sample in zip((hypothesis.arm, hypothesis.against), pair, strict=True):
        found += _lost(name, sample)
        found += _split(name, sample, hypothesis.metric, threshold)
    return (*found, *_constant(pair))


def _lost(name: str, sample: Sample) -> Iterator[str]:
    n = len(sample.values) + sample.unknown
    if sample.diverged:
        yield f"{sample.diverged} of {n} seeds of {name} diverged and count as {sample.floor:g}."
    if sample.unknown:
        yield f"{sample.unknown} of {n} seeds of {name} failed and count as {sample.floor:g}."


def _split(name: str, sample: Sample, metric: str, threshold: float) -> Iterator[str]:
    found = (
        modes(sample.at_worst(), threshold) if metric in ("skill", "exact", "accuracy") else None
    )
    if found is not None:
        n = found.success.n
        yield (
            f"{name} works in {round(found.success.mean * n)} of {n} seeds ({metric} "
            f"{found.high:.2f} there, {found.low:.2f} in the others)."
        )


def _constant(pair: tuple[Sample, Sample]) -> Iterator[str]:
    """Seeds that all agree say nothing about a rare failure."""
    if all(len(set(sample.at_worst())) == 1 for sample in pair):
        n = min(len(sample.at_worst()) for sample in pair)
        unseen = wilson(0, n).high or 0.0
        share = f"{unseen * 100:.0f} % of seeds"
        yield f"All seeds of an arm score the same; a failure in up to {share} could be unseen."
