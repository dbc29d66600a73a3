"""How long a call still takes, told from how fast it has been so far."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studies.conducting.progress import Progress

SETTLED_SECONDS = 2.0
"""A speed that was measured for less time than this is not told."""


def steps_left(each: Iterable[int], at_hand: Iterable[int]) -> int | None:
    """Training steps to be done of unfinished runs; None if one of them has none to count by.

    Args:
        each: The planned steps of every run that is not finished.
        at_hand: The steps that those in work have done; a criterion of fit may allow more than
            were planned.
    """
    planned = list(each)
    if not all(planned):
        return None
    return max(0, sum(planned) - sum(at_hand))


class TimeLeft:
    """Seconds left of one call: steps left at its speed, or runs left where steps tell nothing.

    The clock of the speed starts with the first step that is seen, since workers need seconds to
    start. Steps of runs that were done before this call are in neither.
    """

    def __init__(self) -> None:
        self.first: tuple[float, int] | None = None
        self.at_start: int | None = None
        self.last_end: tuple[float, int] = 0.0, 0

    def seconds(self, progress: "Progress") -> float | None:
        """Seconds left as far as one can tell, or None."""
        if self.at_start is None:
            self.at_start = progress.finished
        if self.first is None and progress.steps:
            self.first = progress.seconds, progress.steps
        here = progress.finished - self.at_start
        if here > self.last_end[1]:
            self.last_end = progress.seconds, here
        if progress.finished >= progress.expected:
            return None
        if progress.steps_left is None or (here and not progress.steps):
            return self._by_runs(progress)
        return self._by_steps(progress, progress.steps_left)

    def _by_steps(self, progress: "Progress", left: int) -> float | None:
        since, before = self.first or (progress.seconds, progress.steps)
        span, done = progress.seconds - since, progress.steps - before
        return left * span / done if done and span >= SETTLED_SECONDS else None

    def _by_runs(self, progress: "Progress") -> float | None:
        """At the pace up to the last end of a run; what passed since counts as part of the next."""
        ended, here = self.last_end
        if not here:
            return None
        a_run = ended / here
        part = min(progress.seconds - ended, a_run)
        return (progress.expected - progress.finished) * a_run - part
