"""Counts and numbers as sentences and tables tell them."""

import math

from store.aggregate import Interval


def out_of(count: int, total: int, noun: str) -> str:
    """A count out of a total: "2 of 3 seeds", "0 of 1 seed"."""
    return f"{count} of {total} {noun if total == 1 else noun + 's'}"


def runs_done(count: int, total: int) -> str:
    """A count of finished runs: "2 of 3 runs are done", "1 of 1 run is done"."""
    return f"{out_of(count, total, 'run')} {'is' if total == 1 else 'are'} done"


def seldom_learned(learned: int, seeds: int) -> str:
    """The seeds of an arm that learned too rarely: "learned in 3 of 5 seeds only"."""
    return f"learned in {out_of(learned, seeds, 'seed')} only" if learned else "did not learn"


def lost_seeds(diverged: int, failed: int, total: int, counted: bool) -> list[str]:
    """The numbers of seeds without scores of their own, and their treatment."""
    phrases: list[str] = []
    if diverged:
        tail = "counts as one" if diverged == 1 else "count as ones"
        tail = f" and {tail} that learned nothing" if counted else ""
        phrases.append(f"{out_of(diverged, total, 'seed')} diverged{tail}")
    if failed:
        phrases.append(f"{out_of(failed, total, 'seed')} failed")
    return phrases


def short_of(value: float, threshold: float) -> str:
    """A value below a threshold, with the digits that show that it is: "0.72", "0.7996"."""
    digits = 2
    while digits < 6 and round(value, digits) >= threshold > value:
        digits += 1
    return f"{value:z.{digits}f}"


def number(value: float) -> str:
    """A share in few signs: ".56", "1.0", "-.03"; what is not 1 is not shown as 1."""
    text = decimal(min(value, 0.994) if value < 0.9995 else value)
    return "1.0" if text == "1.00" else text


def cell_text(interval: Interval | None) -> str:
    """Mean and half-width of an interval, such as ".56±.02"."""
    if interval is None:
        return "n/a"
    if interval.low is None or interval.high is None:
        return number(interval.mean)
    return f"{number(interval.mean)}±{number((interval.high - interval.low) / 2)}"


def decimals(smallest_effect: float) -> int:
    """The number of decimals that tell values apart that differ by a tenth of δ."""
    return (
        0 if smallest_effect >= 10 else max(2, 1 - math.floor(math.log10(smallest_effect) + 1e-9))
    )


def decimal(value: float, digits: int = 2, signed: bool = False) -> str:
    """A share in few signs: ".56", "-.03", "1.00"; with its sign where it is a difference."""
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    if float(text) == 0:
        return f"{0:.{digits}f}"[1:] or "0"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def p_text(p: float, family: int = 1) -> str:
    """A p-value as papers print it: "p = .012", "p < .001"; adjusted ones say so."""
    name = "p" if family == 1 else "Holm p"
    if p < 0.001:
        return f"{name} < .001"
    return f"{name} = {p:.3f}".replace("= 0.", "= .")


def fit_title(metric: str, value: float) -> str:
    """The criterion of fit: "steps until accuracy 0.99 at trained lengths"."""
    return f"steps until {metric} {value:g} at trained lengths"
