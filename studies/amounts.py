"""Counts in words."""


def share(count: int, total: int, noun: str) -> str:
    """How many of how many: "2 of 3 seeds", "0 of 1 seed"."""
    return f"{count} of {total} {noun if total == 1 else noun + 's'}"
