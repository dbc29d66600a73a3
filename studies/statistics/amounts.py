"""Counts and shares as sentences tell them."""


def share(count: int, total: int, noun: str) -> str:
    """How many of how many: "2 of 3 seeds", "0 of 1 seed"."""
    return f"{count} of {total} {noun if total == 1 else noun + 's'}"


def runs_done(count: int, total: int) -> str:
    """How many runs are done: "2 of 3 runs are done", "1 of 1 run is done"."""
    return f"{share(count, total, 'run')} {'is' if total == 1 else 'are'} done"


def seldom_learned(learned: int, seeds: int) -> str:
    """That an arm did not learn, or not in all of its seeds: "learned in 3 of 5 seeds only"."""
    return f"learned in {share(learned, seeds, 'seed')} only" if learned else "did not learn"


def lost_seeds(diverged: int, failed: int, total: int, counted: bool) -> list[str]:
    """How many seeds have no numbers of their own, and what they are counted as."""
    told: list[str] = []
    if diverged:
        tail = "counts as one" if diverged == 1 else "count as ones"
        tail = f" and {tail} that learned nothing" if counted else ""
        told.append(f"{share(diverged, total, 'seed')} diverged{tail}")
    if failed:
        told.append(f"{share(failed, total, 'seed')} failed")
    return told


def short_of(value: float, threshold: float) -> str:
    """A value below a threshold, with the digits that show that it is: "0.72", "0.7996"."""
    digits = 2
    while digits < 6 and round(value, digits) >= threshold > value:
        digits += 1
    return f"{value:z.{digits}f}"
