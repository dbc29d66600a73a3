"""Permutation tests of the contrasts of two crossed factors."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from studies.statistics.permutation import SAME, Alternative, share_as_extreme

Kind = Literal["first", "second", "interaction"]
Sample = Float[np.ndarray, " _"]
Table = Sequence[Sequence[Sample]]
"""The values of each cell, by the levels of the first factor and then of the second."""

Weights = Float[np.ndarray, "first second"]


def permuted(
    kind: Kind,
    table: Table,
    weights: Weights,
    generator: np.random.Generator,
    draws: int,
    alternative: Alternative = "two-sided",
) -> float:
    """The p-value of a contrast of the cell means."""
    cells = [(int(i), int(j)) for i, j in np.argwhere(weights)]
    samples = [table[i][j] for i, j in cells]
    if kind == "interaction":
        samples = _residuals(cells, samples)
    strata = {"first": [j for _, j in cells], "second": [i for i, _ in cells]}
    stratum = np.array(strata.get(kind, [0] * len(cells)))
    sizes = np.array([len(sample) for sample in samples])
    values = np.concatenate(samples)
    weight = np.array([weights[cell] for cell in cells])
    shuffled = values[_orders(np.repeat(stratum, sizes), generator, draws)]
    t = _studentized(shuffled, sizes, weight)
    return share_as_extreme({"two-sided": np.abs(t), "greater": t, "less": -t}[alternative])


def _orders(
    stratum: Int[np.ndarray, " runs"], generator: np.random.Generator, draws: int
) -> Int[np.ndarray, "orders runs"]:
    """Orders of the runs that keep each within its stratum; the first is the observed one."""
    observed = np.arange(len(stratum))
    orders = np.tile(observed, (draws + 1, 1))
    for one in np.unique(stratum):
        places = observed[stratum == one]
        orders[1:, places] = generator.permuted(np.tile(places, (draws, 1)), axis=1)
    return orders


def _studentized(
    values: Float[np.ndarray, "orders runs"],
    sizes: Int[np.ndarray, " cells"],
    weights: Float[np.ndarray, " cells"],
) -> Float[np.ndarray, " orders"]:
    """A contrast of cell means over its standard error, where runs lie cell after cell."""
    scale = np.ptp(values[0])
    if scale <= SAME * np.abs(values[0]).max():
        return np.zeros(len(values))
    values = (values - values[0].mean()) / scale
    in_cell = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    means = values @ in_cell / sizes
    squares = values**2 @ in_cell - sizes * means**2
    variance = (squares / (sizes - 1) / sizes) @ weights**2
    effect = means @ weights
    constant = variance < SAME**1.5
    infinite = np.where(np.abs(effect) < SAME, 0.0, np.copysign(np.inf, effect))
    return np.where(constant, infinite, effect / np.sqrt(np.where(constant, 1.0, variance)))


def _residuals(cells: Sequence[tuple[int, int]], samples: Sequence[Sample]) -> list[Sample]:
    """What the additive model leaves of the values of a 2 × 2 table."""
    rows, columns = ([cell[place] != cells[0][place] for cell in cells] for place in (0, 1))
    sizes = [len(sample) for sample in samples]
    model = np.column_stack(
        [np.ones(sum(sizes)), np.repeat(rows, sizes), np.repeat(columns, sizes)]
    )
    values = np.concatenate(samples)
    left = values - model @ np.linalg.lstsq(model, values, rcond=None)[0]
    # Rounding is not to be taken for noise where the model fits exactly.
    left = np.where(np.abs(left) < SAME * np.abs(values).max(), 0.0, left)
    return np.split(left, np.cumsum(sizes)[:-1])
