"""Holm's correction: how small p-values must be when several hypotheses are tested at once."""

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    r"""Return the adjusted p-values, which are at most α where Holm's procedure rejects at α.

    With $p_{(1)} \le \dots \le p_{(m)}$: $\tilde p_{(i)} = \max_{j \le i} \min(1, (m-j+1)\,
    p_{(j)})$. The chance of any false rejection in the family stays below α, however the tests
    depend on each other. A hypothesis that was not tested (None) stays in the family, as the
    plan counted it: m includes it.

    Source: Holm 1979, Scandinavian Journal of Statistics 6, 65-70.
    """
    order = sorted(
        (index for index, p in enumerate(p_values) if p is not None),
        key=lambda index: p_values[index] or 0.0,
    )
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        p = p_values[index]
        assert p is not None
        highest = max(highest, min(1.0, (len(p_values) - rank) * p))
        adjusted[index] = highest
    return adjusted
