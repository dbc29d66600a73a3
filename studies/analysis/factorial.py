r"""Two crossed factors: the effect of each, and whether one depends on the other.

For levels $i, i'$ of the first factor and $j, j'$ of the second, with cell means $\mu_{ij}$:

- main effect of the first: the mean over j of $\mu_{i'j} - \mu_{ij}$, every j weighted alike;
- interaction: $(\mu_{i'j'} - \mu_{ij'}) - (\mu_{i'j} - \mu_{ij})$, by how much the effect of
  the first factor changes from j to j'. It is 0 where effects add up.

Intervals are Welch's, simultaneous over the family of all contrasts returned. p-values come from
permutations with the studentized contrast as statistic: a main effect permutes the labels of its
factor within each level of the other one, exact where the factor does nothing; an interaction
permutes the residuals of the additive model (Freedman & Lane).

Source: Freedman & Lane 1983, doi:10.1080/07350015.1983.10509354; Pauly, Brunner & Konietschke 2015,
doi:10.1111/rssb.12073.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from studies.analysis.contrasts import Contrast, contrast
from studies.analysis.permutation import Kind, Weights, holm, permuted

Level = Any
Pair = tuple[Level, Level]
Cells = Mapping[Pair, Mapping[int, float]]
"""The value of each seed, by the levels of the two factors."""

DRAWS = 9_999


@dataclass(frozen=True)
class CrossedEffect:
    """One contrast of a crossed design.

    Args:
        kind: "first" or "second" for a main effect of that factor, or "interaction".
        levels: The two levels of the first factor that are compared; None where it is averaged.
        others: Likewise of the second factor.
        contrast: The estimate with its interval, simultaneous over all contrasts of the design.
        p: Of the permutation test, two-sided.
        p_holm: `p`, adjusted for all contrasts of the design.
    """

    kind: Kind
    levels: Pair | None
    others: Pair | None
    contrast: Contrast
    p: float
    p_holm: float


def crossed(
    cells: Cells,
    references: Pair | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[CrossedEffect]:
    """Estimate and test the main effects and interactions of two crossed factors.

    Every level is compared with the reference of its factor.

    Args:
        cells: Values by (level of the first factor, level of the second) and seed.
        references: The level of each factor that the others are compared with; by default those
            of the first cell.
        level: Of the family of intervals.
        draws: Permutations for each contrast.
        seed: Of the permutations.

    Raises:
        ValueError: If a factor has one level alone, a combination is missing, a cell has fewer
            than two values or one that is not finite, or a reference is no level.
    """
    first, second = _levels(cells, references)
    table = [[np.array(list(cells[i, j].values()), dtype=float) for j in second] for i in first]
    weights = list(_contrasts(first, second))
    generator = np.random.default_rng(seed)
    samples = [sample.tolist() for row in table for sample in row]
    found: list[CrossedEffect] = []
    for kind, levels, others, weight in weights:
        estimate = contrast(samples, weight.ravel().tolist(), level, family=len(weights))
        p = permuted(kind, table, weight, generator, draws)
        found.append(CrossedEffect(kind, levels, others, estimate, p, p))
    adjusted = holm([one.p for one in found])
    return [replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True)]


def _levels(cells: Cells, references: Pair | None) -> tuple[list[Level], list[Level]]:
    """The levels of each factor, the reference first."""
    both = [list(dict.fromkeys(key[place] for key in cells)) for place in (0, 1)]
    for place, levels in enumerate(both):
        if len(levels) < 2:
            raise ValueError(f"a factor has at least two levels; got {levels}")
        if references is not None:
            if references[place] not in levels:
                raise ValueError(f"a reference is one of {levels}; got {references[place]!r}")
            levels.sort(key=lambda one, place=place: one != references[place])
    missing = [(i, j) for i in both[0] for j in both[1] if (i, j) not in cells]
    if missing:
        raise ValueError(f"every combination of levels is needed; {missing[0]} is missing")
    return both[0], both[1]


def _contrasts(
    first: list[Level], second: list[Level]
) -> Iterator[tuple[Kind, Pair | None, Pair | None, Weights]]:
    """Every contrast with its weights over the cells."""
    by_first, by_second = (
        [(levels[n], levels[0], _minus(n, len(levels))) for n in range(1, len(levels))]
        for levels in (first, second)
    )
    for one, reference, weight in by_first:
        yield "first", (one, reference), None, np.outer(weight, _mean(len(second)))
    for one, reference, weight in by_second:
        yield "second", None, (one, reference), np.outer(_mean(len(first)), weight)
    for one, reference, weight in by_first:
        for other, other_reference, other_weight in by_second:
            levels, others = (one, reference), (other, other_reference)
            yield "interaction", levels, others, np.outer(weight, other_weight)


def _mean(levels: int) -> Float[np.ndarray, " levels"]:
    return np.full(levels, 1 / levels)


def _minus(one: int, levels: int) -> Float[np.ndarray, " levels"]:
    """One level minus the first."""
    weight = np.zeros(levels)
    weight[one], weight[0] = 1.0, -1.0
    return weight
